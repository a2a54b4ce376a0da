"""Thousands of failure schedules on Spark: a grid of settings, many seeds per setting, and what the
failures cost."""
