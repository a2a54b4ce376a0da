"""The errors of every operation on a cluster.

Owns: ClusterError and its kinds, imported from here by all.  Never: has errors of Kafka's protocol
(protocol/errors.py).
"""

from __future__ import annotations


class ClusterError(Exception):
    """The error for an operation on the cluster that is not possible; the text has the reason."""


class WrongName(ClusterError):
    """The error for an operation that names a broker, topic or partition that does not exist."""


class NotInTime(ClusterError):
    """The error for a wait whose condition did not hold in time; the text has the present state."""
