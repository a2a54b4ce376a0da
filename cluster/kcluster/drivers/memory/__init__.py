"""Brokers that serve bytes in virtual time: TCP in memory."""
