"""The error of an operation on a cluster that is refused or fails.

Owns: ClusterError.  Never: an error of Kafka's protocol (protocol/errors.py has those).
"""

from __future__ import annotations


class ClusterError(Exception):
    """An operation on the cluster was refused or failed; the text is the reason."""
