"""The scenarios around a topology that has no clients: each has other ones, which a seed draws.

Owns: the scenarios that a search plays for a topology.  Never: reads a file, draws a client
(drawn.py) or a fault.  Kafka: no counterpart.

The first scenario has the topology as it is.  The others have shorter times, so that more happens
in a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from msgspec.structs import replace

from kcluster.checks.anomalies.passed_over import PassedOver
from kcluster.checks.anomalies.unsettled_group import UnsettledGroup
from kcluster.config.files.problems import Problem
from kcluster.config.files.tree import Map, MapEntry, Scalar, from_python
from kcluster.protocol.names import has_internal_prefix
from kcluster.scenario.language.scenario import Scenario, read_scenario
from kcluster.search.drawn import DRAWN, Clients, plain
from kcluster.search.hurried import hurried

DURATION: Final = "12s"
HURRIED_DURATION: Final = "8s"
_CHECKS: Final = {"allowed_anomalies": [PassedOver.NAME, UnsettledGroup.NAME]}
"""What Kafka's defaults allow, and no topology prevents: a share group begins at the end of its
partitions, and a streams group loses an answer with its tasks."""


def around_topology(
    node: Map, source: str, problems: Sequence[Problem], seed: int
) -> list[Scenario]:
    """The scenarios of a topology's tree.  ScenarioError for a topology with problems; `problems`:
    those of its text."""
    own = _topics_of(node)
    if own is not None and all(map(has_internal_prefix, own)):
        topics = Map({**own, "orders": MapEntry(from_python({"partitions": 2}))})
        node = Map({**node.entries, "topics": MapEntry(topics)})
    return [*_scenarios(Map({"topology": MapEntry(node)}), source, problems, seed)]


def _scenarios(
    root: Map, source: str, problems: Sequence[Problem], seed: int
) -> Iterator[Scenario]:
    topology = read_scenario(root, source, {}, [*problems]).topology
    quick = hurried(topology)
    for number, draw in enumerate((plain, *DRAWN)):
        of = topology if draw is plain else quick
        clients = Clients.of(of, Random(f"{seed}/workload/{number}"))
        duration = DURATION if of is topology else HURRIED_DURATION
        head = {"workload": draw(clients), "duration": duration, "checks": _CHECKS}
        yield replace(read_scenario(root, source, head, []), topology=of)


def _topics_of(node: Map) -> dict[str, MapEntry] | None:
    """The topics that a topology's tree names; None if the tree is wrong there."""
    topics = node.entries.get("topics")
    match topics and topics.value:
        case None | Scalar(text=None):
            return {}
        case Map() as named:
            return named.entries
    return None
