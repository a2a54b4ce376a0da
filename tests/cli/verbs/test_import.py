"""`kcluster import`: from our own live cluster and back, from saved files and logs; its errors."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.extras import how_to_install
from kcluster.scenario.language.scenario import Scenario
from tests.docs_pages import fenced
from tests.importing.outputs import FOLDER
from tests.test_docs import missing, session

Kcluster = Callable[..., tuple[int, str, str]]

QUIET = pytest.mark.filterwarnings("ignore:.*Use files:DeprecationWarning")
"""kafka-python reads its schemas in an old way."""

TOPOLOGY = """\
config: {num.partitions: 5, log.retention.ms: 86400000, replica.lag.time.max.ms: 4000}
brokers:
  - {id: 3, rack: a}
  - {id: 7, rack: b, config: {log.segment.bytes: 500000000}}
  - {id: 10}
topics:
  orders: {assignment: [[7, 3], [10, 7], [3, 10]], config: {min.insync.replicas: 2}}
  "audit.log": {partitions: 2, replication_factor: 3, config: {cleanup.policy: "compact,delete"}}
"""


def metadata(bootstrap: str) -> tuple[Any, Any]:
    """What clients see of a cluster: (id, rack) of brokers, (leader, replicas) of partitions."""
    from kafka.admin import KafkaAdminClient

    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        brokers = [(one["broker_id"], one["rack"]) for one in client.describe_cluster()["brokers"]]
        topics = {
            topic["name"]: [
                (row["partition_index"], row["leader_id"], row["replica_nodes"])
                for row in sorted(topic["partitions"], key=lambda row: row["partition_index"])
            ]
            for topic in client.describe_topics()
        }
    finally:
        client.close()
    return sorted(brokers), topics


@pytest.mark.clients
@QUIET
def test_import__our_own_cluster__and_what_was_imported_has_the_same_metadata(
    start_up: Callable[..., Any], kcluster: Kcluster, tmp_path: Path
) -> None:
    (tmp_path / "original.yaml").write_text(TOPOLOGY)
    original = start_up("original.yaml", "--name", "original")
    target = tmp_path / "topology.yaml"
    code, _, err = kcluster("import", "--bootstrap", original.bootstrap, "-o", str(target))
    assert code == 0, err
    assert "3 brokers, 2 topics, 5 partitions; start it: kcluster up" in err
    copy = start_up("topology.yaml", "--name", "copy")
    assert metadata(copy.bootstrap) == metadata(original.bootstrap)
    one, two = Topology.load(tmp_path / "original.yaml"), Topology.load(target)
    assert {name: topic.config for name, topic in one.topics.items()} == {
        name: topic.config for name, topic in two.topics.items()
    }
    assert [one.broker_config(number) for number in (3, 7, 10)] == [
        two.broker_config(number) for number in (3, 7, 10)
    ]


def test_import__saved_files__print_a_topology_and_list_what_is_left_out(
    kcluster: Kcluster,
) -> None:
    code, out, err = kcluster(
        "import",
        "--topics", str(FOLDER / "topics.txt"),
        "--configs", str(FOLDER / "broker_configs_all.txt"),
        "--configs", str(FOLDER / "topic_configs_all.txt"),
    )  # fmt: skip
    assert code == 0
    assert Topology.parse(out).topics["payments"].assignment == ((1, 2), (2, 3), (3, 1))
    reason = "config log.dirs: a path on that machine; here logs are kept in memory\n"
    assert f"not taken over: {reason}" in err
    assert f"#   {reason}" in out
    assert "num.network.threads" in Topology.parse(out).without_effect


def test_import__logs_after_the_first_need_no_option_and_name_the_topology(
    kcluster: Kcluster, tmp_path: Path
) -> None:
    (tmp_path / "topology.yaml").write_text("brokers: 3\ntopics: {orders: {partitions: 6}}\n")
    (tmp_path / "scenarios").mkdir()
    target = tmp_path / "scenarios" / "failover.yaml"
    code, _, err = kcluster(
        "import",
        "--log", str(FOLDER / "controller.log"), str(FOLDER / "state-change-1.log"),
        "--topology", str(tmp_path / "topology.yaml"), "-o", str(target),
    )  # fmt: skip
    assert code == 0, err
    assert f"0 not understood; play it: kcluster scenario run {target}" in err
    scenario = Scenario.load(target)
    assert [step.verb for step in scenario.steps[:3]] == ["kill", "start", "stop"]
    assert "topology: ../topology.yaml\n" in target.read_text()


def test_import__files_that_cannot_be_used__are_named_with_their_place(
    kcluster: Kcluster, tmp_path: Path
) -> None:
    topics, configs = str(FOLDER / "topics.txt"), str(FOLDER / "broker_configs.txt")
    code, out, err = kcluster("import", "--topics", configs, "--configs", topics)
    assert (code, out) == (2, "")
    assert f"{configs}:1:1: this is the output of kafka-configs --describe; give it with" in err
    assert f"{topics}:1:1: this is the output of kafka-topics --describe; give it with" in err
    assert kcluster("import", "--log", topics)[0] == 2
    binary = tmp_path / "binary"
    binary.write_bytes(b"Topic: a\n\xff")
    assert kcluster("import", "--topics", str(binary))[2] == f"kcluster: {binary}:2:1: not UTF-8\n"
    missing = str(tmp_path / "missing.txt")
    assert "cannot be read: No such file" in kcluster("import", "--topics", missing)[2]


def test_import__an_output_that_exists_is_kept_without_force(
    kcluster: Kcluster, tmp_path: Path
) -> None:
    target = tmp_path / "topology.yaml"
    target.write_text("mine")
    words = ("import", "--topics", str(FOLDER / "topics.txt"), "-o", str(target))
    assert kcluster(*words)[2] == f"kcluster: {target} exists; --force overwrites it\n"
    assert target.read_text() == "mine"
    assert kcluster(*words, "--force")[0] == 0
    assert Topology.load(target).topics["orders"].partitions == 6


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "Give --bootstrap, --topics, --properties or"),
        (("--bootstrap", "a:1", "--topics", "t"), "Give one of --bootstrap, --topics, --prop"),
        (("--bootstrap", "a:1", "--configs", "c"), "--configs and --brokers go with --topics."),
        (("--bootstrap", "a"), "--bootstrap a: not an address like localhost:9092."),
        (("--topics", "t", "more.txt"), "more.txt: name log files with --log"),
    ],
)
def test_import__options_that_do_not_go_together_are_refused(
    kcluster: Kcluster, words: tuple[str, ...], text: str
) -> None:
    code, _, err = kcluster("import", *words)
    assert code == 2
    assert text in err


@pytest.mark.clients
@QUIET
def test_import__an_address_where_nobody_answers__is_one_line(
    kcluster: Kcluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcluster.importing.admin.TIMEOUT_MS", 300)
    code, out, err = kcluster("import", "--bootstrap", "127.0.0.1:1")
    assert (code, out) == (1, "")
    assert err.startswith("kcluster: 127.0.0.1:1: no Kafka broker answered within 0.3 s (")
    assert err.count("\n") == 1


def test_import__without_kafka_python__says_what_to_install(
    kcluster: Kcluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kafka", None)
    assert kcluster("import", "--bootstrap", "127.0.0.1:1") == (
        1,
        "",
        f"kcluster: --bootstrap needs kafka-python: {how_to_install('clients')}\n",
    )


def test_import__the_guide_shows_what_is_printed(
    kcluster: Kcluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shutil.copytree(FOLDER, tmp_path / "saved"))
    pages = fenced("docs/how-to/import.md")
    sessions = [session(one.text) for one in pages if Path(__file__).name in one.not_run]
    shown = [step for steps in sessions for step in steps]
    assert shown
    for step in shown:
        code, _, err = kcluster(*shlex.split(step.command)[1:])
        assert code == 0, err
        assert missing(step.output, err.splitlines()) == []
