"""Which topics there are: they are created, get more partitions and are deleted."""
