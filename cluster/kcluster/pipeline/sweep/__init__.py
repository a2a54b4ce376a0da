"""Thousands of failure schedules on Spark: a grid of settings, many seeds each, what they cost."""
