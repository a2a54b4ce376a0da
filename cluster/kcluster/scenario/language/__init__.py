"""Scenario files: words, keys, values, and every problem with its place."""
