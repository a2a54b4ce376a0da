"""The error of every operation on a cluster.

Owns: ClusterError, imported from here by all.  Never: an error of Kafka's protocol
(protocol/errors.py).
"""

from __future__ import annotations


class ClusterError(Exception):
    """An operation on the cluster is not possible; the text says why."""
