"""Load on a running system: each module is a program of its own that prints one JSON object."""
