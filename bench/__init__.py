"""Benchmarks: us and its peers in one sitting (`python -m bench`), hot paths (`.micro`)."""
