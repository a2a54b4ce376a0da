"""Run directories: what a run leaves behind, and reading it again as a story.

`record.py` has the values, `directory.py` writes and reads them, `explain.py` tells them,
`page.py` draws them as one HTML file."""
