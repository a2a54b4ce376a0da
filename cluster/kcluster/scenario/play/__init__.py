"""Scenarios played on a stage, live or in virtual time."""
