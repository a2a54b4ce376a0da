"""Handlers of transactions: requests of a coordinator's clients, and of brokers that work for
it."""
