"""Share groups: their records, and their state at share coordinators (KIP-932)."""
