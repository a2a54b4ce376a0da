"""Replacements of the standard library for the threads of a world, by subject."""
