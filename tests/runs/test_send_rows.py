"""Each send in a run directory: where it is in the final log, its fate, what the verdict found."""

from __future__ import annotations

from collections import Counter

from kcluster.runs.record import SendFate
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

SCENARIO = """
name: two deaths
duration: 3s
topology:
  profile: fast
  brokers: 2
  topics: {orders: {partitions: 1, replication_factor: 2, config: {min.insync.replicas: 1}}}
workload: {producers: [{topic: orders, name: shop, rate: 200/s, acks: 1}]}
steps: [STEPS]
"""


def run(steps: str = "", text: str = SCENARIO) -> RunResult:
    return run_scenario(Scenario.parse(text.replace("STEPS", steps), "two.yaml"), "virtual")


def test_send_rows__a_log_filled_in_order() -> None:
    result = run()
    sends, (log,) = result.record().sends, result.record().logs
    count = len(sends)
    assert result.verdict.acked == count > 100
    assert (log.topic, log.partition, log.start_offset, log.end_offset) == ("orders", 0, 0, count)
    assert [send.number for send in sends] == list(range(1, count + 1))
    assert [send.at for send in sends] == [send.offset for send in sends] == list(range(count))
    assert {(send.fate, send.epoch, send.anomalies) for send in sends} == {("kept", 0, ())}


def test_send_rows__records_that_only_a_dead_leader_had_are_lost_or_truncated() -> None:
    result = run(
        "{at: 500ms, slow: {nodes: leader(orders-0), others: followers(orders-0), latency: 40ms}},"
        " {at: 1s, kill: leader(orders-0), as: old}, {after: 500ms, start: old}"
    )
    sends = result.record().sends
    lost = [send for send in sends if send.fate is SendFate.LOST]
    assert len(lost) == result.verdict.counts()["lost-write"] > 0
    for send in lost:
        (found,) = send.anomalies
        assert (found.name, found.allowed, found.records) == ("lost-write", "acks=1", 1)
        assert "epoch 1" in found.cause
        assert (send.outcome, send.epoch, send.at) == ("acked", 0, -1)
    kept = [send for send in sends if send.fate is SendFate.KEPT]
    assert [send.epoch for send in kept] == sorted(send.epoch for send in kept)
    assert {send.outcome for send in sends if send.fate is SendFate.TRUNCATED} <= {"unknown"}
    assert {send.fate for send in sends} <= {"kept", "lost", "truncated", "absent"}


def test_send_rows__records_of_a_deleted_topic() -> None:
    sends = run("{at: 1s, delete_topic: {name: orders}}").record().sends
    fates = [send.fate for send in sends]
    gone = fates.count(SendFate.DELETED)  # it was created again by the next producer
    assert fates == ["deleted"] * gone + ["kept"] * (len(sends) - gone)
    assert (sends[0].at, sends[0].epoch, sends[gone].at) == (-1, 0, 0)


def test_send_rows__records_of_transactions() -> None:
    text = SCENARIO.replace("acks: 1", "transactions: {every: 5, abort: 50%}")
    record = run(text=text).record()
    outcomes = {row.number: row.outcome for row in record.transactions}
    fates = {"committed": "kept", "aborted": "aborted", "open": "hidden"}
    assert {"committed", "aborted"} <= set(outcomes.values())
    for send in record.sends:
        assert send.fate == fates[outcomes[send.transaction]], send
        assert send.at == send.offset  # a hidden record is in the log, too


def test_send_rows__every_copy_of_a_record_counts() -> None:
    steps = "{at: 500ms, rule: {api: Produce, client: shop, drop: reply, nth: 3}}"
    result = run(steps, SCENARIO.replace("acks: 1", "acks: all, idempotent: false"))
    counted: Counter[str] = Counter()
    for send in result.record().sends:
        for found in send.anomalies:
            counted[found.name] += found.records
            assert found.cause == send.error or found.name != "duplicate"
            assert found.allowed == "enable.idempotence=false"
    assert counted["duplicate"] > 0
    assert counted == result.verdict.counts()
