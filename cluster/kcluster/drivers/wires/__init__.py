"""The connections of the project's own clients to brokers: over TCP, or in virtual time."""
