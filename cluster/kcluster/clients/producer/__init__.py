"""The project's own producer."""
