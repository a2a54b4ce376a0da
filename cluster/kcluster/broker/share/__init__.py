"""The share-partition leader (KIP-932): who has acquired which records of a partition, and for how
long.

Owns: nothing; see share_partition.py.  Never: keeps state across restarts
(broker/coordinator/share_state does).
"""
