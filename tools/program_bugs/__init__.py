"""Programs with a bug, and how many runs a search needs to find it."""
