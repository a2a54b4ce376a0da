"""The verbs that change a running cluster: their words, waiting, lines and exit codes."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from kcluster.cli.click_tools import kcluster as kcluster_group
from kcluster.cli.remote import Remote
from kcluster.cli.synonyms import SYNONYMS
from kcluster.security.sasl.scram import ScramClient
from tests.rig.byte_worlds import LiveSocket
from tests.rig.logins import SaslLine
from tests.rig.patience import PATIENCE_S

Start = Callable[..., Any]
Verb = Callable[..., tuple[int, str, str]]

TOPOLOGY = """\
name: lab
profile: fast
brokers: [{id: 1}, {id: 2}, {id: 3}]
topics:
  orders: {assignment: [[1, 2, 3], [2, 3, 1]]}
  solo: {assignment: [[2]]}
"""


@pytest.fixture
def lab(start_up: Start, tmp_path: Path) -> Any:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    return start_up()


def states() -> list[str]:
    return [broker["state"] for broker in Remote().get()["brokers"]]


def orders() -> dict[str, Any]:
    found: dict[str, Any] = Remote().get()["partitions"][0]
    return found


# ------------------------------------------------------------------------------ words for nodes


def test_kill__a_leader_by_its_role_and_the_cluster_is_named(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("kill", "leader(orders-0)")
    assert code == 0
    assert "lab: broker 1 killed; waiting until the cluster notices (up to 90 ms)\n" in out
    assert out.endswith("broker 1 is down\n")
    assert orders()["leader"] == 2


def test_kill__several_at_once_and_start_all_that_are_down(lab: Any, kcluster: Verb) -> None:
    _, out, _ = kcluster("kill", "1,3", "--json")
    answer = json.loads(out)
    assert answer["brokers"] == [1, 3]
    assert answer["states"] == [{"id": 1, "state": "down"}, {"id": 3, "state": "down"}]
    _, out, _ = kcluster("start", "down")
    assert out.endswith("broker 1 is up\nbroker 3 is up\n")
    assert sorted(orders()["isr"]) == [1, 2, 3]


def test_kill__says_which_partitions_had_no_other_replica(lab: Any, kcluster: Verb) -> None:
    _, out, _ = kcluster("kill", "2")
    assert out.splitlines()[-1] == (
        "solo-0 has one replica: no broker can take over (replication_factor: 3)"
    )


def test_pause_resume__the_cluster_takes_over_and_takes_back(lab: Any, kcluster: Verb) -> None:
    assert kcluster("pause", "leader(orders-0)")[1].endswith("broker 1 is paused\n")
    assert orders()["leader"] == 2
    assert kcluster("resume", "1")[1].endswith("broker 1 is up\n")
    assert sorted(orders()["isr"]) == [1, 2, 3]


def test_verbs__for_several_brokers_leave_alone_who_is_so_already(lab: Any, kcluster: Verb) -> None:
    kcluster("kill", "1")
    code, out, _ = kcluster("kill", "all")
    assert (code, out.splitlines()[0]) == (
        0,
        "broker 1 is already down; start it: kcluster start 1",
    )
    assert states() == ["down", "down", "down"]
    assert kcluster("pause", "all")[:2] == (
        0,
        "brokers 1, 2 and 3 are down; start them: kcluster start 1,2,3\n",
    )
    kcluster("start", "2,3")
    code, out, _ = kcluster("start", "all")
    assert (code, out.splitlines()[0]) == (0, "brokers 2 and 3 are already up")
    assert states() == ["up", "up", "up"]
    code, out, _ = kcluster("start", "all", "--json")
    answer = json.loads(out)
    assert (code, [broker["id"] for broker in answer["left_alone"]]) == (0, [1, 2, 3])
    assert (answer["states"], answer["events"]) == ([], [])
    assert kcluster("start", "down")[:2] == (0, "there is no such broker now\n")


def test_verbs__pause_resume_and_restart_do_the_rest(lab: Any, kcluster: Verb) -> None:
    kcluster("pause", "2")
    _, out, _ = kcluster("pause", "all", "--no-wait")
    assert out.splitlines()[0] == "broker 2 is already paused; resume it: kcluster resume 2"
    kcluster("resume", "1,3")
    _, out, _ = kcluster("restart", "all")
    assert out.splitlines()[0] == (
        "broker 2 is paused and cannot shut down cleanly; resume it: kcluster resume 2,"
        " or kill it: kcluster kill 2"
    )
    assert states() == ["up", "paused", "up"]
    _, out, _ = kcluster("resume", "all")
    assert out.startswith("brokers 1 and 3 are not paused; pause them: kcluster pause 1,3\n")
    assert states() == ["up", "up", "up"]
    kcluster("kill", "3")
    _, out, _ = kcluster("rolling-restart")
    assert out.startswith("broker 3 is down; start it: kcluster start 3\n")
    assert states() == ["up", "up", "down"]


def test_restart__one_or_all_in_turn(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("restart", "3")
    assert code == 0
    assert "broker_started" in out
    code, out, _ = kcluster("rolling-restart")
    assert code == 0
    assert "lab: brokers 1, 2 and 3 to be restarted, one after the other\n" in out
    assert states() == ["up", "up", "up"]
    assert sorted(orders()["isr"]) == [1, 2, 3]


@pytest.mark.parametrize(
    "words", ["move orders-0 3", "move orders-0 --to 3", "elect orders-0 --to 3"]
)
def test_move__makes_another_replica_the_leader(lab: Any, kcluster: Verb, words: str) -> None:
    assert kcluster(*words.split())[0] == 0
    assert orders()["leader"] == 3


# ------------------------------------------------------------------------------------ network


def test_isolate__waits_for_the_new_leader_and_heal_for_the_isr(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("isolate", "leader(orders-0)")
    assert code == 0
    assert "leader 1 -> 2" in out
    assert orders()["isr"] == [2, 3]
    assert kcluster("heal")[0] == 0
    assert sorted(orders()["isr"]) == [1, 2, 3]


def test_cut__a_follower_that_lacks_nothing_stays_in_the_isr(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("cut", "1", "3")
    assert code == 0
    assert "waiting" not in out
    assert orders()["isr"] == [1, 2, 3]


def test_slow__takes_one_link_or_all_of_them(lab: Any, kcluster: Verb) -> None:
    _, out, _ = kcluster("slow", "1", "3", "--latency", "4ms")
    assert "{1} and {3}: latency 4 ms" in out
    code, out, _ = kcluster("slow", "all", "--latency", "2ms", "--for", "5s", "--json")
    links = json.loads(out)["events"][0]["event"]["links"]
    assert [1, 2] in links
    assert [2, 1] in links
    code, _, err = kcluster("slow", "1", "--latency", "40")
    assert code == 2
    assert "--latency 40 what? Write 40ms, 40s or 40m" in err


# ------------------------------------------------------------------------------------- topics


def test_topic__is_created_and_deleted(lab: Any, kcluster: Verb) -> None:
    config = ("--config", "min.insync.replicas=2")
    code, out, _ = kcluster("topic", "create", "invoices", "-p", "2", *config)
    assert code == 0
    assert "created: 2 partitions, replication factor 3" in out
    assert "Topic 'invoices' already exists" in kcluster("topic", "create", "invoices")[2]
    assert "did you mean invoices" in kcluster("topic", "delete", "invoice")[2]
    assert "did you mean invoices" in kcluster("recreate-topic", "invoice")[2]
    assert kcluster("topic", "delete", "invoices")[0] == 0
    code, _, err = kcluster("topic", "create", "x", "--config", "retention.mss=1")
    assert code == 2
    assert "config.retention.mss: no such topic config; did you mean retention.ms?" in err


WRONG_ACTIONS = (
    (("pause: 1", "--for", "1"), "--for 1: 1 what? Write 1ms, 1s or 1m"),
    (
        ("isolate leader(orders-0)",),
        "isolate leader(orders-0): a colon is missing; write isolate: leader(orders-0)",
    ),
    (
        ("create_topic: {topic: payments}",),
        "create_topic.name: missing; create_topic.topic: no such key of create_topic; did you"
        " mean name?",
    ),
)


def test_fault__a_late_refusal_by_the_controller_is_reported(lab: Any, kcluster: Verb) -> None:
    code, _, err = kcluster("fault", "create_topic: orders")
    assert code == 1
    assert "create_topic: TOPIC_ALREADY_EXISTS" in err
    for words, problem in WRONG_ACTIONS:
        assert kcluster("fault", *words) == (2, "", f"kcluster: {problem}\n")


# -------------------------------------------------------------------------------------- wait


def test_rule__takes_numbers_and_switches(lab: Any, kcluster: Verb) -> None:
    code, out, err = kcluster("rule", "--duplicate", "--nth", "2", "--probability", "50%")
    assert (code, err) == (0, "")
    assert "appends the records a second time" in out
    code, _, err = kcluster("rule", "--api", "Fetch", "--max-version", "99")
    assert code == 1
    assert "Fetch has versions 0 to 18, so a cap is 0 to 17" in err


def test_wait__for_a_condition_and_for_an_event(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("wait", "isr(orders-0) = 3")
    assert code == 0
    assert out.startswith("lab: isr(orders-0) = 3 holds after ")
    kcluster("kill", "1")
    assert kcluster("wait", "event leader_elected of orders-0", "--since", "1m")[0] == 0
    assert kcluster("wait", "broker 2 leads orders-0", "--json")[0] == 0


UNMET = (
    (("isr(orders-0) = 2", "--within", "20ms"), 1, "after 0.02 s: it is 3 (1, 2, 3)"),
    (("event leader_elected", "--within", "20ms"), 1, "there was no such event"),
    (("leader(nope-0) = 2", "--within", "20ms"), 1, "there is no topic 'nope'"),
    (("100 acked", "--within", "20ms"), 1, "only records of a scenario's workload are counted"),
    (("leadr(orders-0) = 2",), 2, "did you mean leader?"),
    (("settled", "--within", "1"), 2, "1 what? Write 1ms, 1s or 1m"),
)
"""Waits that end without success and change nothing: one cluster is asked them all."""


def test_wait__says_how_it_stands_or_what_is_wrong(lab: Any, kcluster: Verb) -> None:
    for words, code, answer in UNMET:
        exit_code, out, err = kcluster("wait", *words)
        assert (exit_code, out) == (code, ""), words
        assert answer in err, words


# ---------------------------------------------------------------------------------- the shell


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("stop", "down"),
        ("ps", "status"),
        ("topics", "status"),
        ("create", "topic create"),
        ("topic list", "status"),
        ("topic crate", "topic create"),
        ("produce", "client start producer"),
    ],
)
def test_kcluster__a_word_of_another_tool_is_answered_with_ours(
    kcluster: Verb, word: str, meant: str
) -> None:
    code, _, err = kcluster(*word.split())
    assert code == 2
    assert f"No verb '{word}'. Did you mean {meant}" in err


def test_kcluster__connects_to_nothing(kcluster: Verb) -> None:
    code, _, err = kcluster("--bootstrap-server", "localhost:9092", "--list")
    assert code == 2
    assert "kcluster up prints the address for your client" in err


def test_kcluster__synonyms_are_no_verbs_and_suggest_verbs() -> None:
    verbs = kcluster_group.list_commands(click.Context(kcluster_group))
    for typed, meant in SYNONYMS.items():
        assert typed not in verbs
        assert meant.split()[0].rstrip(",") in verbs


def test_kcluster__help_and_version_in_every_spelling(kcluster: Verb) -> None:
    assert kcluster("help", "kill") == kcluster("kill", "--help")
    assert kcluster("help")[1] == kcluster("--help")[1]
    assert kcluster("-V")[1] == kcluster("--version")[1]
    done = subprocess.run(
        [sys.executable, "-m", "kcluster", "--version"], capture_output=True, text=True
    )
    assert done.stdout == kcluster("--version")[1]


def completed(words: str) -> list[str]:
    """What bash is offered for the last of these words."""
    environment = {
        **os.environ,
        "_KCLUSTER_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "kcluster"], env=environment, capture_output=True, text=True
    )
    return [line.split(",", 1)[1] for line in done.stdout.splitlines() if line]


def test_completion__offers_verbs_and_what_the_cluster_has(lab: Any, kcluster: Verb) -> None:
    assert "_KCLUSTER_COMPLETE=bash_complete" in kcluster("completion", "bash")[1]
    assert completed("kcluster roll") == ["rolling-restart"]
    assert completed("kcluster kill ") == [
        "1", "2", "3", "leader(orders-0)", "leader(orders-1)", "leader(solo-0)", "all", "down",
    ]  # fmt: skip
    assert completed("kcluster elect or") == ["orders-0", "orders-1"]
    Remote().ask("DELETE", until_exit=True)
    assert completed("kcluster kill ") == []


def test_up__goes_on_when_nobody_reads_its_output(lab: Any, kcluster: Verb) -> None:
    lab.process.stdout.close()
    assert kcluster("kill", "1")[0] == 0
    assert kcluster("start", "1")[0] == 0
    assert "the cluster goes on" in lab.process.stderr.readline()


def test_up__a_port_in_use_without_a_file_names_the_option(start_up: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        up = start_up("--brokers", "1", "--base-port", str(port))
        assert up.process.wait(PATIENCE_S) == 2
        err = up.process.stderr.read()
    assert err == f"port {port}: in use by another process; --base-port 0 takes free ones\n"


def test_up__quiet_shows_no_events_and_takes_its_name_from_the_environment(
    start_up: Start, kcluster: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KCLUSTER_NAME", "mine")
    up = start_up("--brokers", "2", "--base-port", "0", "--profile", "fast", "-q")
    assert "(mine: 2 brokers" in up.ready
    assert "mine: broker 1 killed" in kcluster("kill", "1")[1]
    assert up.stop() == (0, "", "")


# ------------------------------------------------------------------------------------ the clock


def test_clock__pause_act_step_resume(lab: Any, kcluster: Verb) -> None:
    assert "lab: the clock is running at " in kcluster("clock")[1]
    code, out, _ = kcluster("clock", "pause")
    assert (code, out.endswith("s  (kcluster clock resume)\n")) == (0, True)
    assert kcluster("kill", "1")[1].splitlines()[1:] == [
        "lab: broker 1 killed",
        "broker 1 is down",
        "the clock is paused: the rest follows after kcluster clock resume",
    ]
    assert orders()["leader"] == 1, "nobody has noticed: the clock is paused"
    assert "the clock is paused: nothing happens" in kcluster("status")[1]
    code, out, _ = kcluster("clock", "step", "leader_elected of orders-0")
    assert code == 0
    assert "leader 1 -> 2" in out.splitlines()[0]
    assert orders()["leader"] == 2
    code, out, _ = kcluster("clock", "speed", "0.5", "--json")
    clock = json.loads(out)
    assert (clock["paused"], clock["speed"]) == (True, 0.5)
    assert ": the clock is running at " in kcluster("clock", "resume")[1]


def test_clock__wrong_words(lab: Any, kcluster: Verb) -> None:
    for words in (("speed",), ("speed", "fast"), ("pause", "1"), ("step", "leader_electd")):
        code, _, err = kcluster("clock", *words)
        assert code in (1, 2)
        assert err.startswith("kcluster: ")


# ------------------------------------------------------------------------------------- clients


def test_client__started_listed_and_stopped(lab: Any, kcluster: Verb) -> None:
    # A topic of one partition: of several, the sticky partitioner fills one for seconds (KIP-794).
    start = ("client", "start", "producer", "solo", "--rate", "100/s", "--acks", "1")
    assert kcluster(*start)[:2] == (0, "lab: producer producer-1 is started\n")
    assert kcluster(
        "client", "start", "consumer", "orders", "--keys", "{isolation: read_committed}"
    )
    assert kcluster("wait", "high_watermark(solo-0) >= 3")[0] == 0
    assert kcluster("client", "stop", "producer-1")[0] == 0
    assert kcluster("client", "list")[1].splitlines() == [
        "producer-1  producer  stopped  topic: solo, rate: 100/s, acks: 1",
        "consumer-1  consumer  running  topics: orders, group: readers, isolation: read_committed",
    ]
    code, _, err = kcluster("client", "start", "producer", "order")
    assert (code, "did you mean orders?" in err) == (2, True)


# ---------------------------------------------------------------------------------- predictions


def test_predict__answers_and_then_the_action(lab: Any, kcluster: Verb) -> None:
    code, out, _ = kcluster("predict", "kill: leader(orders-0)", "--answers", "--do")
    assert code == 0
    assert "Who leads orders-0 afterwards?\n  1  broker 1\n  2  broker 2\n" in out
    assert "2: broker 2. The first replica in the assignment that is alive and in the ISR" in out
    assert "leader 1 -> 2" in out, "what follows is shown"
    assert orders()["leader"] == 2
    assert "the clock is running" in kcluster("clock")[1]
    out = kcluster("predict", "heal", "--answers")[1]
    assert out == "nothing to predict: this action takes no broker from the cluster\n"
    asked = json.loads(kcluster("predict", "stop: 2", "--json")[1])["questions"]
    assert {question["kind"] for question in asked} >= {"leader", "writes", "noticed"}


# ------------------------------------------------------------------------------------ passwords


SASL = """
brokers: 1
profile: fast
listeners: {CLIENT: {protocol: SASL_PLAINTEXT}}
config: {sasl.enabled.mechanisms: SCRAM-SHA-256}
security: {users: {alice: first-5ecret}}
"""


def test_password__comes_by_the_standard_input_so_that_no_list_of_processes_shows_it(
    start_up: Start, tmp_path: Path, kcluster: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "topology.yaml").write_text(SASL)
    host, _, port = start_up().bootstrap.partition(":")
    monkeypatch.setattr(sys, "stdin", io.StringIO("second-5ecret\n"))
    code, out, err = kcluster("password", "alice", "-")
    assert (code, "5ecret" in out + err) == (0, False)
    for password, error in (("second-5ecret", 0), ("first-5ecret", 58), ("-", 58)):
        with LiveSocket((host, int(port)), PATIENCE_S) as sock:
            answer = SaslLine(sock).login(ScramClient("SCRAM-SHA-256", "alice", password, "n"))
        assert answer.error_code == error, password
