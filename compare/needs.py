"""`python -m compare.needs`: which cases depend on what a cluster is; writes recorded/needs.json.

Owns: the clusters that differ in one condition from the recorded ones.  Never: decides what a need
is (kcluster/conform/needs.py).

Each case is asked of brokers of ours that differ in one condition from the recorded cluster.  Where
the answer is another one than with the condition, the case depends on it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from compare.checking import CONVERSATIONS, outcome
from compare.systems import SERVER_CONFIG
from compare.virtual import Virtual
from kcluster.config.topology.model import Topology
from kcluster.conform import recorded
from kcluster.conform.cases import families, is_secured
from kcluster.conform.conversations import conversations
from kcluster.conform.filling import CaseError
from kcluster.conform.needs import FILE, NEEDS, NO_AUTHORIZER, THREE_BROKERS, Need
from kcluster.conform.projection import Projection
from kcluster.conform.recorded import Recordings
from kcluster.conform.references import NEWEST
from kcluster.conform.running import CaseRunner
from kcluster.security.authorizer import STANDARD_AUTHORIZER

OTHERS: Final = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "3000",
    "num.partitions": "1",
}
"""The value of a config where it is not the recorded one."""
NOT_THREE: Final = (1, 2, 5)


def clusters(need: Need) -> list[Topology]:
    """The clusters that do not meet a need."""
    if need == THREE_BROKERS:
        return [_topology(count, {}) for count in NOT_THREE]
    if need == NO_AUTHORIZER:
        rights = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
        return [_topology(3, rights)]
    return [_topology(3, {need.config: OTHERS[need.config]})]


def _topology(brokers: int, changed: dict[str, Any]) -> Topology:
    copies = {"default.replication.factor": min(brokers, 3)}
    copies |= {"offsets.topic.replication.factor": min(brokers, 3)}
    config = {**SERVER_CONFIG, **copies, **changed}
    return Topology.of(brokers=brokers, profile="kafka", config=config)


def dependents(topology: Topology, projection: Projection) -> set[str]:
    """The cases whose outcome in this cluster is not the recorded one."""
    recordings = Recordings()
    found: set[str] = set()
    for family, cases in families(NEWEST).items():
        if is_secured(family):
            continue
        runner = CaseRunner(Virtual(NEWEST, topology=topology), "cmp", NEWEST)
        expected = recordings.load(family, NEWEST)
        telling = recordings.telling(family, NEWEST)
        for case in cases:
            for version in sorted(telling.get(case.name, ())):
                asked = projection.of(outcome(runner, case, version))
                if asked != projection.of(expected[case.name][version]):
                    found.add(f"{family}: {case.name}")
    expected = recordings.load(CONVERSATIONS, NEWEST)
    for name, one in conversations().items():
        if one.is_secured or one.needs_operations:
            continue
        runner = CaseRunner(Virtual(NEWEST, topology=topology), "cmp", NEWEST)
        try:
            asked = projection.of(recorded.as_json(runner.converse(one)))
        except CaseError as problem:
            asked = str(problem)
        if asked != projection.of(expected[name][0]):
            found.add(f"conversation: {name}")
    return found


def main() -> int:
    differ = dependents(_topology(3, {}), Projection())
    """Where ours differs from the recorded answers anyway."""
    print(f"differ anyway: {len(differ)}", flush=True)
    found: dict[str, list[str]] = {}
    for need in NEEDS:
        projection = Projection(has_three_brokers=need != THREE_BROKERS)
        cases: set[str] = set()
        for topology in clusters(need):
            cases |= dependents(topology, projection)
        found[need.name] = sorted(cases - differ)
        print(f"{need.name}: {len(found[need.name])} cases", flush=True)
        lines = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(cases, ensure_ascii=False, indent=1)}"
            for name, cases in found.items()
        )
        path = Path(__file__).parents[1] / "cluster" / "kcluster" / FILE
        path.write_text(f"{{\n{lines}\n}}\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
