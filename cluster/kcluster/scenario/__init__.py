"""Scenario files: which faults happen when, and what must be true in the end; run on both clocks.

A file's way: `loader.py` reads it into the values of `model.py` (`config/files/fields.py` has the
kinds of keys), `runner.py` plays it on a `stage.py`, virtual or live, and `report.py` shows the
result.
"""
