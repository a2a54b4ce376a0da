"""Authentication and authorization, without I/O."""
