"""SASL: the mechanisms by which a client proves who it is, and the login of a connection."""
