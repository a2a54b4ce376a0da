"""What the standard library is replaced by for the threads of a world, by subject."""
