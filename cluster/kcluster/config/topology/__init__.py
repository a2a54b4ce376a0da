"""Topology files: from YAML to checked values."""
