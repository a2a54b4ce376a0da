"""Records and their offsets: Produce, Fetch, ListOffsets and their kin."""
