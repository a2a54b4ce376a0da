"""The control socket: how commands talk to the running cluster."""
