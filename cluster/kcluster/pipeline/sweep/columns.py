"""One cell of a sweep: its columns with kinds and defaults, and the values that exclude each other.

Owns: Cell, its values as text, contradictions.  Never: reads a grid (grid.py), runs anything.
Kafka: cells.py names the configs that the columns set.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import blake2b
from typing import Annotated, Final

import msgspec
from msgspec import Struct

from kcluster.config.files.durations import in_seconds
from kcluster.config.files.fields import (
    Flag,
    Kind,
    OneOf,
    Schema,
    Whole,
    duration,
    fields_of,
    rate,
    size,
)
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Items, Map, Node, Scalar, from_yaml
from kcluster.deaths import WAYS_TO_FAIL
from kcluster.scenario.language.profiles import find_profile
from kcluster.scenario.random_faults import RandomFaults

NONE: Final = "none"
_PROFILE: Final = fields_of(RandomFaults)[0].kind
FAILURES: Final = ("failures", "mtbf")
"""The keys of the columns that make brokers fail; the column `faults` does so, too."""
FAILURE_DETAILS: Final = ("failure", "failure_domain", "repair")
"""Keys of the columns that need one of FAILURES."""


class OrNone(Struct, frozen=True):
    """A kind, or the word `none`."""

    inner: Kind

    def read(self, reading: TreeReader, node: Node, path: str) -> object:
        if isinstance(node, Scalar) and node.text == NONE:
            return NONE
        return self.inner.read(reading, node, path)

    def schema(self) -> Schema:
        return {"anyOf": [{"const": NONE}, self.inner.schema()]}

    def form(self) -> str:
        return f"{self.inner.form()}, or {NONE}"


class CellFaults(Struct, frozen=True):
    """A fault profile: its name, and its content as JSON, so that a cell needs no other file."""

    name: str
    profile: str


class FaultsKind(Struct, frozen=True):
    """A profile of random faults, as in scenarios; it is stored as written."""

    def read(self, reading: TreeReader, node: Node, path: str) -> CellFaults | None:
        before = len(reading.problems)
        _PROFILE.read(reading, node, path)
        if len(reading.problems) > before:
            return None
        if isinstance(node, Scalar):
            file = find_profile(node.text or "", os.path.dirname(reading.source))
            assert file is not None  # the file was just read
            with open(file, encoding="utf-8") as opened:
                tree, _ = from_yaml(opened.read(), file)
            assert tree is not None
            return CellFaults(node.text or "", json.dumps(_plain(tree)))
        profile = json.dumps(_plain(node))
        return CellFaults(f"inline {_digest(profile.encode())[:4]}", profile)

    def schema(self) -> Schema:
        return _PROFILE.schema()

    def form(self) -> str:
        return _PROFILE.form()


class Cell(Struct, frozen=True):
    """One combination of settings; each field is a column, its key the name without the unit."""

    brokers: Annotated[int, Whole(1, 99)] = 3
    racks: Annotated[int, Whole(0, 99)] = 0
    """The number of racks; brokers with neighbouring ids share one.  0: no racks."""
    rack_aware: Annotated[bool, Flag()] = True
    """Whether brokers know their rack (broker.rack), so that replicas are spread over racks."""
    partitions: Annotated[int, Whole(1, 1_000)] = 1
    replication_factor: Annotated[int, Whole(1, 99)] = 3
    min_insync_replicas: Annotated[int, Whole(1, 99)] = 1
    acks: Annotated[str, OneOf("acks", ("0", "1", "all"))] = "all"
    idempotent: Annotated[str | bool, OrNone(Flag())] = NONE
    """none: the Java client's default, which depends on its other settings."""
    unclean_election: Annotated[bool, Flag()] = False
    flush_messages: Annotated[str | int, OrNone(Whole(1))] = NONE
    flush_interval_ms: Annotated[str | int, OrNone(duration(1))] = NONE
    write_back_ms: Annotated[str | int, OrNone(duration(1))] = 30_000
    """The age at which the operating system writes a record to the disk, whatever Kafka asks for;
    none: never.  The default is Linux's vm.dirty_expire_centisecs."""
    replica_lag_ms: Annotated[int, duration(1)] = 30_000
    """replica.lag.time.max.ms."""
    latency_ms: Annotated[int, duration()] = 1
    """The latency of one direction between any two nodes.  With 0, replication and acks take no
    time."""
    failures: Annotated[int, Whole(0, 1_000)] = 0
    """The number of failures per run.  Each hits a domain that is up, at a uniformly drawn time."""
    mtbf_ms: Annotated[str | int, OrNone(duration(1))] = NONE
    """Mean time between failures of each domain, drawn from an exponential distribution."""
    repair_ms: Annotated[str | int, OrNone(duration(1))] = 10_000
    """Mean time to repair, drawn from an exponential distribution; none: it stays down."""
    failure: Annotated[str, OneOf("failure", WAYS_TO_FAIL)] = "power"
    failure_domain: Annotated[str, OneOf("domain", ("broker", "rack", "all"))] = "broker"
    """The brokers that fail together: a broker, the brokers of a rack, or all brokers (not the
    controller)."""
    first_failure_ms: Annotated[int, duration()] = 1_000
    """No failure occurs before this time."""
    faults: Annotated[str | CellFaults, OrNone(FaultsKind())] = NONE
    rate_per_s: Annotated[float, rate()] = 10.0
    size_bytes: Annotated[int, size(1, 1 << 20)] = 100
    consumers: Annotated[int, Whole(0, 100)] = 1
    duration_ms: Annotated[int, duration(1_000)] = 60_000

    @property
    def key(self) -> str:
        """A hash of all columns: the identity of a cell in every grid and process."""
        return _digest(msgspec.json.encode(self))

    def columns(self) -> dict[str, str]:
        """Every column as text."""
        return {f.key: format_value(f.name, getattr(self, f.name)) for f in fields_of(Cell)}


def contradictions(cell: Cell) -> Iterator[str]:
    """The reasons why a cell is impossible."""
    replicas = cell.replication_factor
    if replicas > cell.brokers:
        yield f"{replicas} replicas need {replicas} brokers, not {cell.brokers}"
    if cell.min_insync_replicas > replicas:
        least = cell.min_insync_replicas
        yield f"min_insync_replicas {least} exceeds replication_factor {replicas}"
    if cell.racks > cell.brokers:
        yield f"{cell.racks} racks need {cell.racks} brokers, not {cell.brokers}"
    ways = [cell.failures > 0, cell.mtbf_ms != NONE, cell.faults != NONE]
    if sum(ways) > 1:
        yield "failures, mtbf and faults exclude each other"
    if cell.failure_domain == "rack" and not cell.racks:
        yield "failure_domain rack needs racks"
    if any(ways) and cell.first_failure_ms >= cell.duration_ms:
        first = format_value("_ms", cell.first_failure_ms)
        end = format_value("_ms", cell.duration_ms)
        yield f"first_failure {first} is not before the end of the run at {end}"
    if cell.idempotent is True and cell.acks != "all":
        yield "an idempotent producer needs acks=all"


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=8).hexdigest()


def _plain(node: Node) -> object:
    """A tree as Python values; numbers and booleans are converted."""
    if isinstance(node, Map):
        return {key: _plain(entry.value) for key, entry in node.entries.items() if key != "story"}
    if isinstance(node, Items):
        return [_plain(item) for item in node.items]
    if node.text is None or node.quoted:
        return node.text
    if node.text in ("true", "false"):
        return node.text == "true"
    number = whole_number(node.text)
    return node.text if number is None else number


def format_value(field: str, value: object) -> str:
    """A value as a file has it: `10s`, `none`, `true`."""
    if isinstance(value, CellFaults):
        return value.name
    if isinstance(value, bool):
        return "true" if value else "false"
    if field.endswith("_ms") and isinstance(value, int):
        return in_seconds(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
