"""Kafka clusters in pytest: fixtures, verbs, verdicts, scenario files as tests.

`plugin.py` is what pytest loads: it imports the rest when a fixture is used, not before."""
