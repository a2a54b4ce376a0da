"""The drivers: real time over TCP (live), virtual time on an event heap (virtual)."""
