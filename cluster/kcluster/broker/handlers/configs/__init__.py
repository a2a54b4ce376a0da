"""Configs and client quotas, described here and changed by the controller."""
