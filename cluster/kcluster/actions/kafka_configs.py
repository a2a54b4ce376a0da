"""Configs and quotas in actions: `config: {min.insync.replicas: 2}`.

Owns: reading their names.  Never: judges a value (the controller does, as for an administrator);
reads a client's config (scenario/language/client_configs.py).  Kafka: kafka-configs.sh
--add-config.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from msgspec import Struct

from kcluster.config.files.fields import Schema, text
from kcluster.config.files.problems import join, unknown
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Map, Node
from kcluster.config.kafka.catalog import broker_catalog
from kcluster.config.kafka.client_quotas import CLIENT_QUOTAS
from kcluster.config.kafka.group import GROUP_CONFIGS
from kcluster.config.kafka.spelling import config_name
from kcluster.config.kafka.topic import TOPIC_CONFIGS

_VALUE: Final = text()


class KafkaConfigs(Struct, frozen=True):
    """A mapping of config names, in either spelling, to text; read by Kafka's names."""

    what: str
    known: Callable[[], Collection[str]]

    def read(self, reading: TreeReader, node: Node, path: str) -> dict[str, str] | None:
        if not isinstance(node, Map):
            example = "a mapping like {min.insync.replicas: 2}"
            reading.wrong(node, path, f"{kind(node)}; it must be {example}")
            return None
        known = self.known()
        configs: dict[str, str] = {}
        for key, entry in node.entries.items():
            name, at = config_name(key, known), join(path, key)
            if name not in known:
                reading.wrong(entry, at, unknown(self.what, key, known))
            elif name in configs:
                reading.wrong(entry, at, f"{name} is given twice")
            elif (value := _VALUE.read(reading, entry.value, at)) is not None:
                configs[name] = value
        return configs

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": _VALUE.schema()}

    def form(self) -> str:
        return "mapping such as {min.insync.replicas: 2}"


def _all_names() -> Collection[str]:
    return {**TOPIC_CONFIGS, **GROUP_CONFIGS, **broker_catalog(), **CLIENT_QUOTAS}


TOPIC_CONFIG: Final = KafkaConfigs("topic config", lambda: TOPIC_CONFIGS)
ANY_CONFIG: Final = KafkaConfigs("config of topics, groups, brokers or clients", _all_names)
