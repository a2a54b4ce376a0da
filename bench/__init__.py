"""Benchmarks: this cluster and its peers (`python -m bench`), and the hot paths (`.micro`)."""
