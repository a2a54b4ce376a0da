"""Scenario files: which faults happen when, and what must be true in the end; run on both clocks.

The way of a file: `loader.py` reads it (what a key may hold: `config/files/fields.py`) into a
`model.py`, `runner.py` plays it on a `stage.py`, virtual or live, and `report.py` shows the result.
"""
