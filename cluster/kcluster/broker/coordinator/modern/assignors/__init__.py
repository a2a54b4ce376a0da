"""Assignors of groups with epochs: pure functions from members and topics to partitions.

assignor.py: what they are given and return.  uniform.py, range.py: those of consumer groups.
"""
