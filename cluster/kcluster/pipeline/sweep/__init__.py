"""Thousands of failure schedules on Spark: a grid of settings, many seeds per setting, and the cost
of the failures."""
