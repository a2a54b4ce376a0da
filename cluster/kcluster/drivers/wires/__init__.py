"""How the project's own clients reach brokers: over TCP, or in virtual time."""
