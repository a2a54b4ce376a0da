"""Configs and client quotas: described here, changed by the controller."""
