"""From the schema table to decode and encode functions."""
