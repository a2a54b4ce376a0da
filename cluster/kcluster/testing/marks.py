"""The arguments of `@pytest.mark.kafka_cluster(...)`: the cluster, and how it runs.

Owns: the mark's keys, their checks and their words.  Never: knows pytest, starts anything.
Kafka: @ClusterTest of ClusterTestExtensions.

A mark takes the keys of a topology, and the keys of virtual time.  The clock of a mark is read by
the plugin before anything of this package is imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, structs

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.problems import show, unknown
from kcluster.config.topology.model import Topology

TOPOLOGY_KEYS: Final = (
    "brokers",
    "topics",
    "profile",
    "config",
    "features",
    "listeners",
    "security",
    "network",
    "kafka_version",
    "write_back",
    "name",
)
_ALICE: Final = {"alice": {"password": "alice-secret", "mechanisms": ["SCRAM-SHA-512"]}}
SECURITY_WORDS: Final[dict[str, dict[str, object]]] = {
    "ssl": {"tls": "auto"},
    "sasl_plaintext": {"users": _ALICE},
    "sasl_ssl": {"tls": "auto", "users": _ALICE},
}
"""The short forms of `security=`: the key `security` of a topology whose only listener, CLIENT, has
this protocol."""
VIRTUAL_KEYS: Final = ("seeds", "schedule", "compute", "limit", "scenario", "chaos")
"""Keys for clusters with clock="virtual" only."""
KEYS: Final = ("topology", "seed", "clock", "manners", *VIRTUAL_KEYS, *TOPOLOGY_KEYS)
CHAOS: Final = {"one fault": "one_failure_at_a_time", "overlapping faults": "overlapping_faults"}
"""The profiles that ship with kcluster, by their words for `chaos`."""
CLOCKS: Final = ("live", "virtual")
SCHEDULES: Final = ("fifo", "random")
DEFAULT_SEED: Final = 1
DEFAULT_LIMIT_S: Final = 3600.0
DEFAULT_PROFILES: Final = {"live": "fast", "virtual": "kafka"}
"""The default profile of each clock.  In virtual time Kafka's own time constants cost nothing."""


class MarkError(ValueError):
    """The error for a mark with wrong arguments; str() is one line."""


class MarkArguments(Struct, frozen=True):
    """The arguments of a mark.  `clock`: "" if the mark names none.  `seeds`: the number of runs,
    with `seed` and the numbers after it.  `compute`: the slowness of the machine, None to draw it
    from the seed.  `scenario`: the file whose steps are performed beside the test, "" for none.
    `chaos`: a word of CHAOS, or the file of a profile, "" for none.
    `manners`: whether bad habits of clients fail the test."""

    topology: Topology
    seed: int
    clock: str = ""
    seeds: int = 1
    schedule: str = SCHEDULES[0]
    compute: float | None = 1.0
    limit_s: float = DEFAULT_LIMIT_S
    scenario: str = ""
    chaos: str = ""
    manners: bool = False

    def with_seed(self, seed: int) -> MarkArguments:
        """The arguments with another seed."""
        return structs.replace(self, seed=seed)


def arguments_of(mark: Any, clock: str) -> MarkArguments:
    """The arguments of a mark for a cluster on this clock; MarkError or TopologyError, with the
    nearest right name, for wrong arguments."""
    keys: dict[str, Any] = {} if mark is None else dict(mark.kwargs)
    for key in keys:
        if key not in KEYS:
            raise MarkError(f"{key}: {unknown('argument', key, KEYS)}")
    if mark is not None and mark.args:
        raise MarkError("takes keyword arguments, such as brokers=3")
    said = keys.pop("clock", "")
    if said:
        _check_word("clock", said, CLOCKS)
    if clock == "live" and said != "virtual":
        for key in VIRTUAL_KEYS:
            if key in keys:
                raise MarkError(f"{key}: only with clock='virtual'")
    how = {
        "clock": said,
        "seed": _whole("seed", keys.pop("seed", DEFAULT_SEED)),
        "seeds": _whole("seeds", keys.pop("seeds", 1)),
        "schedule": keys.pop("schedule", SCHEDULES[0]),
        "compute": _factor(keys.pop("compute", 1.0)),
        "limit_s": _limit_s(keys.pop("limit", DEFAULT_LIMIT_S)),
        "manners": _flag("manners", keys.pop("manners", False)),
        "scenario": _file("scenario", keys.pop("scenario", "")),
        "chaos": _chaos(keys.pop("chaos", "")),
    }
    _check_word("schedule", how["schedule"], SCHEDULES)
    if how["seeds"] < 1:
        raise MarkError(f"seeds: {how['seeds']} is no number of runs")
    return MarkArguments(topology=_topology(keys, DEFAULT_PROFILES[clock]), **how)


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise MarkError(f"{key}: {show(value)} is neither True nor False")
    return value


def _topology(keys: dict[str, Any], profile: str) -> Topology:
    topology = keys.pop("topology", None)
    word = keys.get("security")
    if isinstance(word, str):
        _check_word("security", word, tuple(SECURITY_WORDS))
        if "listeners" in keys:
            raise MarkError(f"security: {word} brings its own listener; leave listeners out")
        keys["listeners"] = {"CLIENT": {"protocol": word.upper()}}
        keys["security"] = SECURITY_WORDS[word]
    if isinstance(topology, Topology):
        if keys:
            raise MarkError(f"{next(iter(keys))}: part of the topology given")
        return topology
    if isinstance(topology, Mapping):
        return Topology.of(**{"profile": profile, **topology, **keys})
    if topology is not None:
        if not isinstance(topology, str | os.PathLike):
            raise MarkError(f"topology: {show(topology)} is neither a file nor a topology")
        return Topology.load(topology, **keys)
    return Topology.of(**{"brokers": 3, "profile": profile, **keys})


def _check_word(key: str, value: object, words: tuple[str, ...]) -> None:
    if value not in words:
        raise MarkError(f"{key}: {value}: {unknown(key, str(value), words)}")


def _whole(key: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise MarkError(f"{key}: {show(value)} is not a whole number")
    return value


def _factor(value: object) -> float | None:
    if value == "random":
        return None
    if not isinstance(value, int | float) or value < 0:
        raise MarkError(f"compute: {show(value)} is neither a factor, such as 2.0, nor 'random'")
    return float(value)


def _limit_s(value: object) -> float:
    if isinstance(value, str):
        try:
            return milliseconds(value) / 1000
        except ValueError as error:
            raise MarkError(f"limit: {error}") from None
    if not isinstance(value, int | float) or value <= 0:
        raise MarkError(f"limit: {show(value)} is no time, such as '10m' or 600 seconds")
    return float(value)


def _chaos(value: object) -> str:
    if not isinstance(value, str | os.PathLike):
        words = ", ".join(map(repr, CHAOS))
        raise MarkError(f"chaos: {show(value)} is none of {words}, nor a profile's file")
    return os.fspath(value)


def _file(key: str, value: object) -> str:
    if not isinstance(value, str | os.PathLike):
        raise MarkError(f"{key}: {show(value)} is not a file")
    return os.fspath(value)
