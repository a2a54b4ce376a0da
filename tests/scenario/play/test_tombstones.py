"""Records without a value, which a producer of a workload sends."""

from __future__ import annotations

import pytest

from kcluster.checks.verdict_facts import VALID
from kcluster.clients.ledger import SentRecord
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

TEXT = """\
topology:
  brokers: 3
  profile: fast
  topics: {table: {partitions: 2, config: {CONFIG}}}
  config: {log.cleaner.backoff.ms: 100}
workload:
  producers:
    - {topic: table, name: shop, rate: 200/s, tombstones: 25%, PRODUCER}
    - {topic: table, name: desk, rate: 50/s, keys: 3}
  consumers: CONSUMER
duration: 3s
steps: []
"""
READER = "{topics: table, name: reader, group: readers}"


def played(
    config: str = "", producer: str = "keys: 8", consumer: str = READER, clock: str = "virtual"
) -> RunResult:
    text = TEXT.replace("CONFIG", config).replace("PRODUCER", producer)
    return run_scenario(Scenario.parse(text.replace("CONSUMER", consumer)), clock, 1)


def key_of(send: SentRecord) -> int:
    return int(send.value.split(b":")[1].split(b" ")[0].rstrip(b".")) % 8


@pytest.mark.parametrize("clock", ["virtual", "live"])
def test_tombstones__each_is_sent_and_read_by_its_name(clock: str) -> None:
    result = played(clock=clock)
    assert (result.verdict.outcome, result.failures) == (VALID, [])
    sends = [send for send in result.ledger.sends if send.producer == "shop"]
    tombstones = [send for send in sends if send.value.endswith(b" (null)")]
    assert 0.15 < len(tombstones) / len(sends) < 0.35
    assert {key_of(send) for send in tombstones} == set(range(8))
    read = {each.value for each in result.ledger.reads}
    assert read == {send.value for send in result.ledger.sends}


def test_tombstones__compressed_and_of_a_share_group() -> None:
    share = "{topics: table, name: reader, group: readers, share: true}"
    result = played(producer="keys: 8, config: {compression.type: gzip}", consumer=share)
    assert (result.verdict.outcome, result.failures) == (VALID, [])


def test_tombstones__go_from_a_compacted_topic_when_they_are_old() -> None:
    compacted = "cleanup.policy: compact, segment.ms: 200, min.cleanable.dirty.ratio: 0.01"
    many = "keys: 500, count: 300"  # the other producer makes the log go on
    kept, gone = (
        played(f"{compacted}, delete.retention.ms: {retention_ms}", many, "[]")
        for retention_ms in (86_400_000, 100)
    )
    for result in (kept, gone):
        assert (result.verdict.outcome, result.failures) == (VALID, [])
    assert tombstones_left(kept) > 50
    assert tombstones_left(gone) < 10


def tombstones_left(result: RunResult) -> int:
    judged = result.recorder.judged
    assert judged is not None
    values = [value for log in judged.logs.values() for _, value in log.records]
    return sum(value is not None and value.endswith(b" (null)") for value in values)


def test_tombstones__need_keys() -> None:
    with pytest.raises(ScenarioError, match="a record without a value needs a key: add keys"):
        played(producer="keys: 0")
