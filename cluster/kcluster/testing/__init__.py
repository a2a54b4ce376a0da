"""Kafka clusters in pytest: fixtures, verbs, verdicts, scenario files as tests.

pytest loads `plugin.py`, which imports the rest when a fixture is used, not before."""
