"""The same past with other values of parameters, beside the past with the values that it had.

Owns: the order of playing and comparing, the past that is kept for the next comparison.  Never:
knows a parameter (parameters.py does), plays a past (play/past.py does).
Kafka: no counterpart; only in virtual time can the same past be played again.

Both pasts are played from the start, with the same steps, clients and seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from kcluster.clients.ledger import Partition
from kcluster.handle.cluster import Cluster
from kcluster.operations.names import partition_in
from kcluster.runs.record import RunRecord
from kcluster.scenario.forking import past_of
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.parameter_difference import ParameterDifference, parameter_difference
from kcluster.scenario.parameters import Parameter, Values, notes_on, parameters_of, with_values
from kcluster.scenario.play.past import PlayedPast, play_past
from kcluster.scenario.play.played import PlayedRun


class Replay(Struct, frozen=True):
    """The difference that values make.  `assumptions`: the reasons why the played past differs from
    the real one, and what the values do not reach, one line each."""

    difference: ParameterDifference
    assumptions: tuple[str, ...]


class PlayablePast(Protocol):
    """A past as a scenario that is played with a seed until `at_ms` after its start."""

    @property
    def scenario(self) -> Scenario:
        """The scenario."""

    @property
    def seed(self) -> int:
        """The seed."""

    @property
    def at_ms(self) -> int:
        """The moment, in ms since the scenario began."""

    def assumptions(self, record: RunRecord, problems: Sequence[str]) -> tuple[str, ...]:
        """The reasons why the played past, with this record and these problems, differs from the
        real one; ClusterError if they are different pasts."""


class _Kept(Struct, frozen=True):
    """A past with the values that it had; `key`: what it was played from."""

    key: tuple[str, int, Partition]
    facts: PlayedPast
    assumptions: tuple[str, ...]


class Replays:
    """The replays of one cluster or run.  The last past with the values that it had is kept, so
    that further values for the same moment are played once, not twice."""

    def __init__(self) -> None:
        self._kept: _Kept | None = None

    def play(
        self, source: Cluster | PlayedRun, partition: str, at_ms: int | None, values: Values
    ) -> Replay:
        """Play the past of a partition, such as orders-0, with other values, until a moment on the
        source's clock, by default its last one.  ScenarioError for wrong values; ClusterError for a
        moment that the record does not have, and for a past that cannot be played as it was."""
        name = partition_in(partition)
        past = _past(source, at_ms)
        changed = with_values(past.scenario, name, values)
        here = self._here(past, name)
        there = play_past(changed, past.seed, past.at_ms, name).facts
        lines = (*here.assumptions, *there.problems, *notes_on(past.scenario, name, values))
        return Replay(parameter_difference(name, values, here.facts, there), lines)

    def _here(self, past: PlayablePast, partition: Partition) -> _Kept:
        key = past.scenario.text, past.at_ms, partition
        kept = self._kept
        if kept is None or kept.key != key:
            played = play_past(past.scenario, past.seed, past.at_ms, partition)
            lines = past.assumptions(played.record, played.facts.problems)
            self._kept = kept = _Kept(key, played.facts, lines)
        return kept


def parameters_in(source: Cluster | PlayedRun, partition: str) -> list[Parameter]:
    """The parameters of a partition's past, with their values at its start."""
    return parameters_of(_past(source, None).scenario, partition_in(partition))


def _past(source: Cluster | PlayedRun, at_ms: int | None) -> PlayablePast:
    if not isinstance(source, PlayedRun):
        return past_of(source, at_ms)
    past = source.past(at_ms)
    # What follows the last step of a run, its repair, is no part of its past.
    return replace(past, at_ms=min(past.at_ms, past.scenario.duration_ms))
