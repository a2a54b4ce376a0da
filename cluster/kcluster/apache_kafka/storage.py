"""The storage of a node: its directories, formatted for a cluster.

Owns: meta.properties, and what StorageTool is told.  Never: starts a node.
Kafka: MetaPropertiesEnsemble, StorageTool, Formatter.

A broker's directory is formatted by its meta.properties alone; only a controller's has records,
which Kafka's own tool writes.
"""

from __future__ import annotations

import base64
import secrets
import shutil
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kcluster.config.kafka.broker import BROKER_CONFIGS
from kcluster.config.topology.model import Topology
from kcluster.config.topology.sasl import enabled_mechanisms, scram_users
from kcluster.config.topology.specs import UserSpec
from kcluster.protocol.uuids import uuid_text
from kcluster.security.sasl.scram_keys import MIN_ITERATIONS, salted_password

SALT_BYTES: Final = 16
_FEATURES: Final = frozenset(name for name, one in BROKER_CONFIGS.items() if one.feature)
META: Final = "meta.properties"


def new_uuid() -> str:
    """A random UUID as Kafka writes it; it never begins with a dash, which tools take for an
    option.  Kafka: Uuid.randomUuid."""
    while (text := uuid_text(uuid.uuid4().bytes)).startswith("-"):
        pass
    return text


def format_broker(directories: Iterable[Path], node_id: int, cluster_id: str) -> None:
    """Empty the directories of a broker, and format them."""
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        (directory / META).write_text(
            f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\ndirectory.id={new_uuid()}\n"
        )


def format_arguments(topology: Topology, cluster_id: str, properties: Path) -> list[str]:
    """The arguments with which StorageTool formats a controller: the features of the topology, and
    the credentials of users who log in with SCRAM."""
    words = ["format", "--cluster-id", cluster_id, "--config", str(properties)]
    of_configs = {name: text for name, text in topology.config.items() if name in _FEATURES}
    for name, level in (topology.features | of_configs).items():
        words += ["--feature", f"{name}={level}"]
    users = {
        (user.name, mechanism): user
        for spec in topology.brokers
        for user, mechanism in scram_users(
            topology.security.users,
            enabled_mechanisms(spec.all_listeners, topology.config_texts(spec.id)),
        )
    }
    for (_, mechanism), user in users.items():
        words += ["--add-scram", _scram_credential(user, mechanism)]
    return words


def _scram_credential(user: UserSpec, mechanism: str) -> str:
    """A user's credential as the tool takes it: without the password, since a list of processes
    shows the tool's arguments."""
    salt = secrets.token_bytes(SALT_BYTES)
    salted = salted_password(mechanism, user.password, salt, MIN_ITERATIONS)
    of = {
        "name": user.name,
        "salt": base64.b64encode(salt).decode(),
        "saltedpassword": base64.b64encode(salted).decode(),
        "iterations": str(MIN_ITERATIONS),
    }
    return f"{mechanism}=[{','.join(f'{name}={text}' for name, text in of.items())}]"
