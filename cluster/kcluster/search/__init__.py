"""Search: faults are drawn and varied until a run shows a bug, which is then shrunk."""
