"""Statements that must hold after every step, and their checks."""
