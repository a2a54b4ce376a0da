"""The errors of every operation on a cluster.

Owns: ClusterError and its kinds, imported from here by all.  Never: an error of Kafka's protocol
(protocol/errors.py).
"""

from __future__ import annotations


class ClusterError(Exception):
    """An operation on the cluster is not possible; the text says why."""


class WrongName(ClusterError):
    """An operation names a broker, topic or partition that does not exist."""


class NotInTime(ClusterError):
    """A condition that was waited for did not hold in time; the text has the present state."""
