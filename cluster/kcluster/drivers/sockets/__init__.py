"""Listening sockets and connections of the live driver."""
