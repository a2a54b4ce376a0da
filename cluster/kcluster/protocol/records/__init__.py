"""Record batches and message sets: bytes <-> records."""
