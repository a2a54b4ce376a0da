"""What goes wrong, when, and what must come of it: scenario files, and running them on both clocks.

A file's way: `loader.py` reads it (`fields.py` says what each key may hold), `model.py` holds it,
`runner.py` plays it on a `stage.py`, virtual or live, `report.py` tells how it went."""
