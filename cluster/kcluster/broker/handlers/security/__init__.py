"""ACLs, authentication and credentials."""
