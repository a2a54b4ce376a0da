"""The record of a run: from the brokers, from the clients, and from the logs at its end."""
