"""What was recorded of a run: at the brokers, by the clients, in the logs at its end."""
