"""Configs of the workload's clients, by Kafka's names: `config: {linger.ms: 5, acks: all}`.

Owns: the names, their reading, the defaults of each profile.  Never: creates a client
(workload.py).  Kafka: ProducerConfig, ConsumerConfig.
"""

from __future__ import annotations

from types import NoneType
from typing import Final, TypeVar, get_args, get_type_hints

from msgspec import Struct, structs

from kcluster.config.files.fields import Schema
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import join, show, unknown
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Map, Node, Scalar
from kcluster.config.kafka.spelling import config_name

FAST_FACTOR: Final = 100
"""Profile fast divides Kafka's time constants by this, the clients' too."""
TENTH: Final = "tenth"
WHOLE: Final = "whole"
PACES: Final = {TENTH: 10, WHOLE: FAST_FACTOR}
"""Profiles of the clients of a file for `fast` where the brokers' times are a tenth of Kafka's, or
Kafka's: all times of the clients, also those that the file sets, are those of `fast` times this."""
_KEPT: Final = frozenset({"linger_ms", "socket_connection_setup_timeout_ms"})
"""Times that are not scaled: they have no effect on the detection of a failure, or on recovery."""
_FLAGS: Final = {"true": True, "false": False}


_WITHOUT_UNIT: Final = ("batch_size_bytes", "max_request_size_bytes", "buffer_memory_bytes")
"""Fields that have a unit in their names, while Kafka's names have none."""


def kafka_name(field: str) -> str:
    """Kafka's name of a field: `batch_size_bytes` -> `batch.size`, `fetch_min_bytes` ->
    `fetch.min.bytes`."""
    name = field.removesuffix("_bytes") if field in _WITHOUT_UNIT else field
    return name.replace("_", ".")


def names_of(struct: type[Struct]) -> dict[str, str]:
    """Fields of a client's settings by Kafka's names."""
    return {kafka_name(field.name): field.name for field in structs.fields(struct)}


ClientSettings = dict[str, object]
"""Values of settings, by field."""


def defaults_of(struct: type[Struct], profile: str) -> ClientSettings:
    """The values that a profile changes: the times, in the profile `fast` and those of PACES."""
    if profile != "fast" and profile not in PACES:
        return {}
    return {
        field.name: max(1, field.default // FAST_FACTOR)
        for field in structs.fields(struct)
        if field.name.endswith("_ms")
        and field.name not in _KEPT
        and isinstance(field.default, int)
        and field.default > 0
    }


def pace_of(profile: str) -> int:
    """The factor of all times of a workload, also of those that a file sets."""
    return PACES.get(profile, 1)


Settings = TypeVar("Settings", bound=Struct)


def paced(settings: Settings, profile: str) -> Settings:
    """The settings of a client with the times of its profile's pace."""
    pace = pace_of(profile)
    if pace == 1:
        return settings
    values = {
        field.name: getattr(settings, field.name)
        for field in structs.fields(settings)
        if field.name.endswith("_ms") and field.name not in _KEPT
    }
    longer = {name: ms * pace for name, ms in values.items() if isinstance(ms, int) and ms > 0}
    return structs.replace(settings, **longer)


class ClientConfigs(Struct, frozen=True):
    """A mapping of Kafka's config names, as a dict by the settings' fields."""

    struct: type[Struct]
    what: str

    def read(self, reading: TreeReader, node: Node, path: str) -> ClientSettings | None:
        if not isinstance(node, Map):
            text = f"{kind(node)}; it must be a mapping of Kafka's names, like linger.ms"
            reading.wrong(node, path, text)
            return None
        names = names_of(self.struct)
        hints = get_type_hints(self.struct)
        values: dict[str, object] = {}
        for key, entry in node.entries.items():
            name = config_name(key, names)
            field = names.get(name)
            if field is None or field in values:
                text = f"{name} is given twice" if field else unknown(self.what, key, names)
                reading.wrong(entry, join(path, key), text)
                continue
            try:
                values[field] = _value(entry.value, name, hints[field])
            except ValueError as error:
                reading.wrong(entry.value, join(path, key), str(error))
        return values

    def schema(self) -> Schema:
        properties = {
            name: {"type": ["string", "number", "boolean"]} for name in names_of(self.struct)
        }
        return {"type": "object", "properties": properties, "additionalProperties": False}

    def form(self) -> str:
        return "mapping of Kafka's names, such as {linger.ms: 5}"


def _value(node: Node, key: str, hint: object) -> object:
    if not isinstance(node, Scalar) or node.text is None:
        raise ValueError(f"{kind(node)}; it must be a value")
    text = node.text
    types = [x for x in (get_args(hint) or (hint,)) if x is not NoneType]
    if key == "acks":
        if text not in ("0", "1", "all", "-1"):
            raise ValueError(f"{show(text)}: acks is 0, 1 or all")
        return -1 if text == "all" else int(text)
    if bool in types:
        if text not in _FLAGS:
            raise ValueError(f"{show(text)}: it must be true or false")
        return _FLAGS[text]
    if int in types:
        number = whole_number(text.removeprefix("-"))
        if number is None:
            raise ValueError(f"{show(text)} is not a whole number")
        return -number if text.startswith("-") else number
    return float(text) if float in types else text
