"""The share-partition leader (KIP-932): the members that have acquired records of a partition, and
their time limits.

Owns: nothing; see share_partition.py.  Never: keeps state across restarts
(broker/coordinator/share_state does).
"""
