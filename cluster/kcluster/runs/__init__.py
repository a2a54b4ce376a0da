"""Run directories: the record of a finished run as files, and its presentation.

`record.py` has the row types, `build_record.py` fills them from a run, `directory.py` writes and
reads the files, `explain.py` presents a run as text, `page.py` as one HTML file."""
