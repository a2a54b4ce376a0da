"""Share groups: their state, kept by share coordinators (KIP-932)."""
