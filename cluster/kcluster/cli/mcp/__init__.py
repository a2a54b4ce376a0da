"""`kcluster mcp`: the verbs as tools of an agent."""
