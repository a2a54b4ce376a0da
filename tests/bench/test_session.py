from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
import yaml

from bench.__main__ import options_of, sizes_of
from bench.clients.requests import check
from bench.ours import growth_points
from bench.processes import BenchError, cpu_s, free_ports, spawn, status_value
from bench.systems import Kafka, Kcluster, Kfake, Mock, Running
from bench.virtual_scenario import Outcome, run_scenario
from bench.visit import FULL, QUICK, new_log
from bench.wire import LENGTH, address_of, batch_of, produce_frame


def test_options__the_defaults_are_a_full_session() -> None:
    options = options_of([])
    assert (options.runs, options.systems) == (5, ["kcluster", "kafka", "kfake", "mock"])
    assert sizes_of(options) == FULL


def test_options__quick_is_one_short_run() -> None:
    options = options_of(["--quick", "--mb", "7", "--figures", "virtual"])
    assert (options.runs, [figure.key for figure in options.figures]) == (1, ["virtual_ms"])
    assert sizes_of(options).mb == 7
    assert sizes_of(options).connections == QUICK.connections


@pytest.mark.parametrize("words", [["--systems", "redpanda"], ["--figures", "speed"]])
def test_options__an_unknown_name_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(words)
    assert words[1] in capsys.readouterr().err


def test_systems__a_missing_peer_reports_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KCLUSTER_PEERS", raising=False)
    assert "KCLUSTER_PEERS" in Mock().missing_requirement()
    monkeypatch.setenv("KCLUSTER_PEERS", str(tmp_path))
    monkeypatch.setenv("PEERS_CACHE", str(tmp_path))
    for peer in (Kafka(), Kfake(), Mock()):
        assert "there is no " in peer.missing_requirement()
    (tmp_path / "librdkafka-mock").write_text("")
    assert Mock().missing_requirement() == ""


def test_systems__versions_of_peers_come_from_their_build_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PEERS_CACHE", str(tmp_path))
    assert (Kafka().version(), Kfake().version()) == ("unknown", "unknown")
    libraries = tmp_path / "kafka" / "libs-4.4.0"
    libraries.mkdir(parents=True)
    (libraries / "kafka-clients-4.4.0.jar").touch()
    (tmp_path / "kfake").mkdir()
    (tmp_path / "kfake" / "go.mod").write_text("\tgithub.com/x/pkg/kfake v0.1 // indirect\n")
    assert (Kafka().version(), Kfake().version()) == ("4.4.0", "v0.1")


def test_kcluster__its_topology_is_the_repositorys_on_free_ports() -> None:
    text, first_port, brokers = Kcluster(profile="fast").topology_text()
    topology = yaml.safe_load(text)
    assert (topology["profile"], brokers) == ("fast", 3)
    assert [broker["port"] for broker in topology["brokers"]] == [
        first_port + at for at in range(3)
    ]
    assert "orders" in topology["topics"]


def test_running__a_failed_start_is_stopped_whatever_the_error(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.process = spawn([sys.executable, "-c", "input()"], running.log)
    with pytest.raises(UnicodeError), running.stopped_unless_up():
        raise UnicodeError
    assert running.process.poll() is not None


def test_ports__are_free_and_in_a_row() -> None:
    first = free_ports(3, (101, 102))
    assert first >= 31_092
    assert free_ports(3, (101, 102), lambda port: port == first) > first


def test_growth__quick_leaves_out_the_largest() -> None:
    names = [name for name, _, _ in growth_points(QUICK)]
    assert "growth_partitions_1000" in names
    assert "growth_partitions_10000" not in names
    assert len(growth_points(FULL)) == 12


def test_log__a_failed_step_is_reported_and_the_rest_continues() -> None:
    shown: list[str] = []

    def fails() -> dict[str, float]:
        raise BenchError("no broker")

    log = new_log(shown.append)
    log.attempt("load", fails)
    log.attempt("idle", lambda: {"idle_cpu_pct": 0.25})
    assert (log.values, log.reasons) == ({"idle_cpu_pct": 0.25}, {"load": "no broker"})
    assert shown[0] == "load: not measured: no broker"


def test_proc__memory_is_read_from_the_status() -> None:
    assert status_value("Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t  1234 kB\n", "VmRSS") == 1234
    with pytest.raises(BenchError):
        status_value("Name:\tx\n", "VmRSS")


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc")
def test_proc__cpu_time_grows() -> None:
    before_s = cpu_s([os.getpid()])
    until_s = time.process_time() + 0.03  # /proc counts in ticks of 10 ms
    while time.process_time() < until_s:
        pass
    assert cpu_s([os.getpid()]) > before_s > 0


def test_wire__frames_end_with_the_batch_that_they_carry() -> None:
    batch = batch_of(3, 10)
    frame = produce_frame("orders", 4, batch)
    assert frame.endswith(batch)
    assert LENGTH.unpack_from(frame)[0] == len(frame) - 4
    assert address_of("a.b:1,c:2") == ("a.b", 1)


def test_requests__responses_out_of_order_are_detected() -> None:
    answers = b"".join(LENGTH.pack(6) + LENGTH.pack(number) + b"ok" for number in range(3))
    check(answers, 10, 3)
    with pytest.raises(SystemExit, match="answer 1 has"):
        check(answers[:10] + answers[20:] + answers[10:20], 10, 3)
    with pytest.raises(SystemExit, match="20 bytes"):
        check(answers[:20], 10, 3)


@pytest.mark.long
def test_virtual_scenario__everything_is_acked_and_nothing_lost() -> None:
    outcome = run_scenario()
    assert isinstance(outcome, Outcome)
    assert outcome.acked == outcome.sent == 2_950
    assert outcome.lost == 0
    assert outcome == run_scenario()
