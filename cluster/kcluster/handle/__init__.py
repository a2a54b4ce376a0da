"""Cluster: the handle for Python users."""
