"""The project's own consumer."""
