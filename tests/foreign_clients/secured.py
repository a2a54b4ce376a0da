"""A cluster that lets in nobody without TLS and a name, and each user to its own topics only.

Each user has one way to log in, so `client_config` finds the way by the user's name.  Tests come by
the listener INSIDE, without TLS, as a super user.
"""

from __future__ import annotations

from typing import Any, Final

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster

MECHANISMS: Final = {"plain": "PLAIN", "sha256": "SCRAM-SHA-256", "sha512": "SCRAM-SHA-512"}
"""By the user who logs in by it."""
TOKEN: Final = "token"
"""Logs in by OAUTHBEARER."""
CERTIFICATE: Final = "certificate"
"""Comes by the listener that asks for certificates."""
USERS: Final = (*MECHANISMS, TOKEN, CERTIFICATE)


def secured(topics: tuple[str, ...], config: dict[str, Any]) -> Topology:
    """Three brokers.  `topics`: those of each user, without its name and `-` before them; each has
    a partition that broker 1 leads."""
    shape = {"assignment": [[1, 2, 3]], "min.insync.replicas": 2}
    acls: list[dict[str, Any]] = []
    for user in USERS:
        allow = f"CN={user}" if user == CERTIFICATE else user
        acls += [
            {"allow": allow, "to": ["read", "write", "describe"], "topic": f"{user}-*"},
            {"allow": allow, "to": "read", "group": user},
            {"allow": allow, "to": ["write", "describe"], "transactional_id": user},
        ]
    return Topology.of(
        brokers=3,
        profile="fast",
        listeners={
            "INSIDE": {"protocol": "PLAINTEXT"},
            "PASSWORD": {"protocol": "SASL_SSL"},
            "MUTUAL": {"protocol": "SSL"},
        },
        topics={f"{user}-{topic}": shape for user in USERS for topic in topics},
        security={
            "tls": "auto",
            "super_users": ["ANONYMOUS"],
            "users": {
                user: {"password": f"{user}-secret", "mechanisms": [mechanism]}
                for user, mechanism in MECHANISMS.items()
            },
            "acls": acls,
        },
        config={
            "sasl.enabled.mechanisms": ",".join([*MECHANISMS.values(), "OAUTHBEARER"]),
            "listener.name.mutual.ssl.client.auth": "required",
            **config,
        },
    )


def listener_of(user: str) -> str:
    """Where a user comes in."""
    return "MUTUAL" if user == CERTIFICATE else "PASSWORD"


def settings(cluster: Cluster, library: str, user: str) -> dict[str, Any]:
    """Of a client of this user, as `client_config` hands them out."""
    return cluster.client_config(library, user, listener_of(user))
