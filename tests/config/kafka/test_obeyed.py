"""A setting that may be written is read: nothing is accepted and then ignored."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from kcluster.config.kafka.broker import BROKER_CONFIGS
from kcluster.config.kafka.catalog import WHY_NOT_SIMULATED, broker_catalog
from kcluster.config.kafka.definitions import GROUP_CONFIGS, TOPIC_CONFIGS, ConfigDef

PACKAGE = Path(__file__).parents[3] / "cluster" / "kcluster"
NODES = (
    "broker",
    "controller",
    "drivers",
    "faults",
    "network",
    "operations",
    "partition",
    "runtime",
)
"""What a cluster runs on.  Clients have settings of the same names."""
HOLDERS = ("config", "settings", "self", "broker")
"""How the expression ends that a config is read from: `node.config.num_partitions`."""
ONLY_CHECKED = ("log_local_retention_ms", "log_local_retention_bytes")
"""Not obeyed, but read where a change is checked as Kafka checks it (dynamic_configs.py)."""

ALL = [
    pytest.param(definition, id=f"{definition.scope} {definition.name}")
    for definitions in (BROKER_CONFIGS, TOPIC_CONFIGS, GROUP_CONFIGS)
    for definition in definitions.values()
]


def attributes_read(*files: Path) -> set[str]:
    """Names of the attributes that are read from a variable called config."""
    return {
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and ast.unparse(node.value).rpartition(".")[2] in HOLDERS
    }


@cache
def read_by_nodes() -> set[str]:
    """Attributes, and configs read by Kafka's name through BrokerSettings or a topic's own."""
    files = [file for package in NODES for file in (PACKAGE / package).rglob("*.py")]
    by_name = {
        node.value.replace(".", "_")
        for file in files
        if file.name not in ("settings.py", "dynamic_configs.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value
    }
    read = attributes_read(*files) | by_name
    if "max_segment_bytes" in read:
        read |= {"segment_bytes", "internal_segment_bytes"}
    return read


def is_read(definition: ConfigDef) -> bool:
    """Whether a node reads it, or reads a topic config whose default it is, or a group config
    whose default or bound it is."""
    if definition.field in read_by_nodes():
        return True
    named = definition.name.replace(".max.standby.", ".num.standby.")
    of_group = re.sub(r"^(\w+)\.(min|max)\.", r"\1.", named.removeprefix("group."))
    if of_group not in GROUP_CONFIGS:
        of_group = named.removeprefix("group.")
    if of_group in GROUP_CONFIGS and of_group != definition.name:
        return GROUP_CONFIGS[of_group].field in read_by_nodes()
    return definition.scope == "broker" and any(
        definition.name in topic.synonyms and topic.field in read_by_nodes()
        for topic in TOPIC_CONFIGS.values()
    )


@pytest.mark.parametrize("definition", ALL)
def test_every_config_is_read_or_marked_as_not_obeyed(definition: ConfigDef) -> None:
    if definition.field in ONLY_CHECKED:
        assert not definition.obeyed
    elif definition.obeyed:
        assert is_read(definition), "nothing reads it: obey it, or move it to catalog.txt"
    else:
        assert not is_read(definition), "it is read, so it is obeyed: drop `obeyed=False`"


def test_a_broker_config_is_obeyed_if_the_topic_config_with_its_default_is() -> None:
    for topic in TOPIC_CONFIGS.values():
        for synonym in topic.synonyms:
            assert BROKER_CONFIGS[synonym].obeyed == topic.obeyed, (topic.name, synonym)


COORDINATORS = ("transaction.", "transactional.", "producer.id.", "offsets.", "group.", "share.")
"""How the names of their configs begin."""


@pytest.mark.parametrize(
    "name", sorted(name for name in broker_catalog() if name.startswith(COORDINATORS))
)
def test_a_config_of_a_coordinator_is_obeyed_or_has_a_reason_why_not(name: str) -> None:
    assert name in WHY_NOT_SIMULATED or BROKER_CONFIGS[name].obeyed
