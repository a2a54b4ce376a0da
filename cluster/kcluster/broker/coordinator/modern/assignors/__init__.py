"""Assignors of groups with epochs: pure functions from members and topics to partitions.

assignor.py: their arguments and results.  uniform.py, range.py: the assignors of consumer groups.
"""
