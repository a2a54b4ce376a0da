"""Handlers of transactions: the clients of a coordinator, and the brokers that work for it."""
