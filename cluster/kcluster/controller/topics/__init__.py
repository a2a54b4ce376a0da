"""Which topics there are, and where their new partitions go."""
