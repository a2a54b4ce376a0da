"""Real client code in virtual time: threads, locks, sockets, clocks and random numbers of a world."""
