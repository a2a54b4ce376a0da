"""One replica's log: segments, look-ups, validation, retention, compaction."""
