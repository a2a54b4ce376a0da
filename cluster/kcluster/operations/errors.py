"""What a user is told when something cannot be done to a cluster.

Owns: ClusterError.  Never: an error of Kafka's protocol (protocol/errors.py has those).
"""

from __future__ import annotations


class ClusterError(Exception):
    """What a user asked of the cluster cannot be done; the text says why."""
