"""Real client code in virtual time: its threads, locks, clocks, sockets and random numbers."""
