"""Bugs put into the core on purpose: the measure of the search, and of the checks that it asks."""
