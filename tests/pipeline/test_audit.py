"""The audit of run directories agrees with the simulator's own verdict, for every scenario."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from kcluster.pipeline.audit import ANOMALY_OF, audit
from kcluster.pipeline.tables import Tables, find_runs
from kcluster.runs.directory import RunError, write_run
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from tests.property.test_mutations import acks_do_not_wait, sequences_are_not_checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENARIOS = Path(__file__).parents[2] / "scenarios"
INCIDENTS = sorted((SCENARIOS / "incidents").glob("*.yaml"))
SAFE_SEEDS = (1, 2, 3)
LIVE = ("acks_one_crash", "duplicate_by_lost_ack")
SOME_NAMES = (
    *LIVE,
    "acks_one_planned_move",
    "delayed_commit",
    "min_insync_two",
    "unclean_election",
)
SOME = [path for path in INCIDENTS if path.stem in SOME_NAMES]
LOSSY = "acks_one_planned_move"

WEAK = """
name: weak ACKS
topology:
  brokers: 3
  profile: fast
  config: {unclean.leader.election.enable: true}
  topics: {orders: {partitions: 2, replication_factor: 3, config: {min.insync.replicas: 1}}}
workload:
  producers:
    - {topic: orders, name: shop, rate: 100/s, acks: ACKS, config: {enable.idempotence: false}}
    - {topic: orders, name: store, rate: 50/s, acks: all}
  consumers: {topics: orders, name: reader, group: readers}
duration: 5s
steps:
  - at: 500ms
    faults:
      profile:
        every: 50ms..500ms
        repair: 50ms..1500ms
        at_once: 2
        kinds:
          - {kill: any broker}
          - {kill: {brokers: any broker, how: power}}
          - {kill: {brokers: any broker, how: wipe}}
          - {isolate: any broker}
          - {isolate: {nodes: any broker, others: controller}}
"""
BROKEN = """
name: broken core
topology:
  brokers: 3
  profile: fast
  topics: {orders: {replication_factor: 3, config: {min.insync.replicas: 2}}}
workload:
  producers: {topic: orders, name: shop, rate: 200/s, acks: all}
  consumers: {topics: orders, name: reader, group: readers}
duration: 3s
steps:
  - {at: 500ms, rule: {api: Produce, client: shop, drop: reply, nth: 3}}
  - {at: 1s, slow: {nodes: leader(orders-0), others: followers(orders-0), latency: 40ms}}
  - {at: 1500ms, kill: leader(orders-0), as: old}
  - {after: 500ms, start: old}
"""
"""Settings are safe: what goes wrong is a bug, and nothing allows it."""
RECREATION = "  - {at: 4s, recreate_topic: orders}\n"
"""Every kind of failure happens; in some runs the topic is recreated, too."""

CUT_AND_ABORTED = """
name: cut and aborted
topology:
  brokers: 3
  profile: fast
  topics:
    orders: {assignment: [[1, 2, 3]], config: {unclean.leader.election.enable: true}}
    __transaction_state: {assignment: [[3]]}
workload:
  producers: {topic: orders, name: shop, rate: 100/s, transactions: {every: 1000, abort: 100%}}
duration: 2s
steps:
  - {at: 500ms, isolate: {nodes: 3, others: "1, 2"}}
  - {at: 1s, kill: {brokers: "1, 2", how: wipe}}
  - {at: 1500ms, start: "1, 2"}
"""
"""Records that were acked are cut from the log by an unclean election; then their transaction is
aborted.  Nobody has lost them."""

pytestmark = pytest.mark.timeout_s(550)  # all incidents, on a busy machine


class Audited(NamedTuple):
    """One audit of all runs.  `verdicts`: by run, as verdict.json has them."""

    incidents: list[Path]
    parent: Path
    verdicts: dict[str, dict[str, Any]]
    totals: list[Any]
    summary: list[Any]
    problems: list[str]
    damaged: Path


@pytest.fixture(
    scope="module",
    params=[SOME, pytest.param(INCIDENTS, marks=pytest.mark.slow)],
    ids=["some incidents", "all incidents"],
)
def audited(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Audited:
    incidents: list[Path] = request.param
    parent = tmp_path_factory.mktemp("all runs [1], {2}")  # a path, not a glob pattern
    plays: list[tuple[Scenario, str, int | None]] = []
    plays += [(Scenario.load(path), "virtual", None) for path in incidents]
    plays += [(Scenario.load(path), "live", None) for path in incidents if path.stem in LIVE]
    safe = Scenario.load(SCENARIOS / "safe_settings.yaml")
    plays += [(safe, "virtual", seed) for seed in SAFE_SEEDS]
    plays.append((Scenario.parse(CUT_AND_ABORTED, "cut.yaml"), "virtual", None))
    weak = [WEAK.replace("ACKS", acks) for acks in ("0", "1", "all")]
    weak.append(weak[1].replace("name: weak", "name: recreated") + RECREATION)
    plays += [
        (Scenario.parse(text, "weak.yaml"), "virtual", seed) for text in weak for seed in (1, 2)
    ]
    for scenario, clock, seed in plays:
        write_run(parent, run_scenario(scenario, clock, seed).record())
    (parent / "latest").unlink()
    verdicts = {
        path.name: json.loads((path / "verdict.json").read_text()) for path in parent.iterdir()
    }
    damaged = damage(one(parent, LOSSY), parent / "damaged")
    runs, problems = find_runs([parent])
    tables = Tables(spark, runs)
    found = audit(tables)
    totals, summary = found.totals.collect(), found.summary.collect()
    found.close()
    tables.close()
    return Audited(
        incidents, parent, verdicts, totals, summary, problems + tables.problems, damaged
    )


def one(parent: Path, name: str) -> Path:
    return next(path for path in parent.glob(f"{name}-virtual-*") if not path.is_symlink())


def damage(source: Path, copy: Path) -> Path:
    """A copy with an invalid line, a truncated line, and without verdict."""
    shutil.copytree(source, copy)
    sends = (copy / "sends.jsonl").read_bytes().splitlines(keepends=True)
    sends[2] = b'{"producer": 7}\n'
    sends[-1] = sends[-1][:40]
    (copy / "sends.jsonl").write_bytes(b"".join(sends))
    with open(copy / "events.jsonl", "ab") as trace:
        trace.write(b"\xff\x00 no JSON\n")
    (copy / "verdict.json").unlink()
    return copy


FATE_OF = {name: fate for fate, name in ANOMALY_OF.items()}


def counts_of_verdicts(audited: Audited) -> dict[str, Counter[tuple[Any, ...]]]:
    """Per run's verdict: (topic, partition, fate, setting) -> number of records."""
    counts: dict[str, Counter[tuple[Any, ...]]] = {run: Counter() for run in audited.verdicts}
    for run, verdict in audited.verdicts.items():
        for each in verdict["anomalies"]:
            if each["name"] in FATE_OF:
                key = (*each["partition"], FATE_OF[each["name"]], each["allowed"])
                counts[run][key] += each["count"]
    return counts


def test_audit__agrees_with_the_verdict_of_every_run(audited: Audited) -> None:
    counted: dict[str, Counter[tuple[Any, ...]]] = {run: Counter() for run in audited.verdicts}
    for row in audited.summary:
        if row["run"] in counted and row["fate"] != "late":
            key = (row["topic"], row["partition"], row["fate"], row["allowed"])
            counted[row["run"]][key] += row["records"]
    assert len(counted) == len(audited.incidents) + len(LIVE) + len(SAFE_SEEDS) + 1 + 8
    assert counted == counts_of_verdicts(audited)
    settings = {key[2:] for counts in counted.values() for key in counts}
    assert settings >= {
        ("lost", "acks=0"),
        ("lost", "acks=1"),
        ("lost", "unclean.leader.election.enable=true"),
        ("duplicated", "enable.idempotence=false"),
        ("reordered", "enable.idempotence=false"),
        ("aborted_read", "a client with transactions of version 1"),
    }


def test_audit__totals_are_those_of_the_verdict(audited: Audited) -> None:
    columns = ("sent", "acked", "failed", "unknown")
    sums = {run: [0, 0, 0, 0] for run in audited.verdicts}
    fates: dict[str, Counter[tuple[Any, ...]]] = {run: Counter() for run in audited.verdicts}
    for row in audited.totals:
        if row["run"] != audited.damaged.name:
            for at, column in enumerate(columns):
                sums[row["run"]][at] += row[column]
            for fate in ANOMALY_OF:
                fates[row["run"]][row["topic"], row["partition"], fate] += row[fate]
    verdicts = audited.verdicts.items()
    assert sums == {run: [verdict[name] for name in columns] for run, verdict in verdicts}
    for run, counts in counts_of_verdicts(audited).items():
        wanted: Counter[tuple[Any, ...]] = Counter()
        for (*where, _), count in counts.items():
            wanted[tuple(where)] += count
        assert +fates[run] == wanted, run


def test_audit__acked_records_of_an_aborted_transaction_are_not_lost(audited: Audited) -> None:
    (run,) = [name for name in audited.verdicts if name.startswith("cut")]
    sends = (audited.parent / run / "sends.jsonl").read_text().splitlines()
    (send,) = [row for row in map(json.loads, sends) if row["value"].startswith("shop:60.")]
    assert (send["outcome"], send["offset"]) == ("acked", 60)
    assert (send["fate"], send["at"], send["epoch"]) == ("aborted", -1, 0)
    (total,) = [row for row in audited.totals if row["run"] == run]
    assert total["acked"] > 0
    assert {fate: total[fate] for fate in ANOMALY_OF} == dict.fromkeys(ANOMALY_OF, 0)
    assert audited.verdicts[run]["anomalies"] == []


def test_audit__epoch_producer_and_cause_are_those_of_the_verdicts_chains(audited: Audited) -> None:
    rows: dict[tuple[Any, ...], list[Any]] = {}
    for row in audited.summary:
        key = (row["run"], row["topic"], row["partition"], row["fate"], row["allowed"])
        rows.setdefault(key, []).append(row)
    compared = 0
    for run, verdict in audited.verdicts.items():
        for each in verdict["anomalies"]:
            if each["name"] not in FATE_OF:
                continue
            fate = FATE_OF[each["name"]]
            found = rows[run, *each["partition"], fate, each["allowed"]]
            is_readers = f"read by {each['client']}" in each["text"]
            chain = "\n".join(link["text"] for link in each["chain"])
            epochs: set[int | None] = set(
                map(int, re.findall(r"leader in epoch (\d+)", chain))
            ) or {None}
            if fate == "reordered":  # its chain names no epochs
                epochs = {row["epoch"] for row in found}
            assert any(
                (is_readers or row["producer"] == each["client"])
                and row["epoch"] in epochs
                and is_in_chain(row["cause"], chain, fate)
                for row in found
            ), (run, each["text"], chain, found)
            compared += 1
    assert compared > 20


def is_in_chain(cause: str, chain: str, fate: str) -> bool:
    """Whether the chain has the audit's cause."""
    if fate != "lost":
        return cause in chain or cause == "no error was reported"
    if cause == "no broker has appended it":
        return "no broker has appended it" in chain
    epoch = re.search(r"epoch (\d+)", cause)
    return epoch is None or f"in epoch {epoch[1]}" in chain


def test_audit__bad_input_is_reported_with_its_place_and_the_rest_is_used(audited: Audited) -> None:
    (total,) = [row for row in audited.totals if row["run"] == audited.damaged.name]
    lines = (audited.damaged / "sends.jsonl").read_bytes().count(b"\n") + 1
    notes = (audited.damaged / "events.jsonl").read_bytes().count(b"\n")
    assert total["sent"] == lines - 2
    assert total["lost"] == 27
    places = [problem.split(": ")[0] for problem in audited.problems]
    assert sorted(places) == sorted(
        f"{audited.damaged}/{place}"
        for place in (
            "verdict.json",
            f"events.jsonl:{notes}",
            "sends.jsonl:3",
            f"sends.jsonl:{lines}",
        )
    )
    assert all(problem.partition(": ")[2] for problem in audited.problems)


def test_audit__given_contents_replace_the_logs(spark: SparkSession, audited: Audited) -> None:
    run = one(audited.parent, "min_insync_two")
    sent = [json.loads(line) for line in (run / "sends.jsonl").read_text().splitlines()]
    held = [
        (run.name, each["topic"], each["partition"], each["offset"], each["value"])
        for each in sent
        if each["outcome"] == "acked"
    ]
    held[5] = (*held[5][:4], held[6][4])
    schema = "run string, topic string, partition bigint, offset bigint, value string"
    tables = Tables(spark, find_runs([run])[0])
    found = audit(tables, contents=spark.createDataFrame(held, schema))
    (total,) = found.totals.collect()
    assert (total["lost"], total["duplicated"], total["reordered"]) == (1, 1, 0)
    (lost,) = [row for row in found.summary.collect() if row["fate"] == "lost"]
    assert lost["cause"] == "the log holds it, the table does not"
    found.close()
    tables.close()


def test_audit__unusable_runs_are_refused(audited: Audited, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no such directory"):
        find_runs([tmp_path / "nowhere"])
    with pytest.raises(RunError, match=r"no run: run\.json is missing"):
        find_runs([tmp_path])
    text = (one(audited.parent, LOSSY) / "run.json").read_text()
    reads = "this version reads formats 3 and 4"
    (tmp_path / "run.json").write_text(text.replace('"format": 4', '"format": 9'))
    with pytest.raises(RunError, match=rf"run\.json: format 9, .*; {reads}$"):
        find_runs([tmp_path])
    (tmp_path / "run.json").write_text(text.replace('"format": 4', '"format": 1'))
    with pytest.raises(
        RunError, match=f"format 1, .* {reads}: run the scenario again: kcluster scenario run"
    ):
        find_runs([tmp_path])


def test_audit__a_run_without_fates_is_refused_or_named(
    spark: SparkSession, audited: Audited, tmp_path: Path
) -> None:
    source = one(audited.parent, LOSSY)
    shutil.copytree(source, old := tmp_path / "old")
    text = (old / "run.json").read_text()
    (old / "run.json").write_text(text.replace('"format": 4', '"format": 3'))
    runs, _ = find_runs([old])
    with pytest.raises(RunError, match=r"format 3, .*; the audit needs format 4: run the scenario"):
        audit(Tables(spark, runs))
    shutil.copytree(source, foreign := tmp_path / "foreign")
    rows = [json.loads(line) for line in (foreign / "sends.jsonl").read_text().splitlines()]
    for row in rows:
        del row["fate"], row["anomalies"]
    (foreign / "sends.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tables = Tables(spark, find_runs([foreign])[0])
    found = audit(tables)
    problem = f"foreign: {len(rows):,} sends have no fate: the run was not judged"
    assert tables.problems == [problem]
    found.close()
    tables.close()


@pytest.mark.pure_python  # a class of the extension cannot be broken on purpose
def test_audit__what_a_broken_core_does_is_counted_as_in_its_verdict(
    spark: SparkSession, tmp_path: Path
) -> None:
    found: dict[str, Counter[tuple[str, str]]] = {}
    wanted = {acks_do_not_wait: "lost-write", sequences_are_not_checked: "duplicate"}
    for breaks, name in wanted.items():
        with pytest.MonkeyPatch.context() as patch:
            breaks(patch)
            result = run_scenario(Scenario.parse(BROKEN, f"{name}.yaml"), "virtual", 1)
        run = write_run(tmp_path, result.record())
        counts = result.verdict.counts()
        assert counts[name] > 0
        found[run.name] = Counter({(FATE_OF[x], ""): counts[x] for x in counts if x in FATE_OF})
    (tmp_path / "latest").unlink()
    tables = Tables(spark, find_runs([tmp_path])[0])
    audited = audit(tables)
    counted: dict[str, Counter[tuple[str, str]]] = {run: Counter() for run in found}
    for row in audited.summary.collect():
        if row["fate"] != "late":
            counted[row["run"]][row["fate"], row["allowed"]] += row["records"]
    audited.close()
    tables.close()
    assert counted == found
