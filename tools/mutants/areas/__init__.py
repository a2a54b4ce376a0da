"""The mutations, one file per area of the core."""
