"""`kcluster search app.py`: faults that make users' programs fail."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

BILLING = """
import os, sqlite3, sys, time
from kafka import KafkaConsumer

commits_first = sys.argv[1] == "first"
consumer = KafkaConsumer("orders", bootstrap_servers=os.environ["KCLUSTER_BOOTSTRAP"],
                         group_id="billing", auto_offset_reset="earliest",
                         enable_auto_commit=False, session_timeout_ms=6000)
while True:
    for records in consumer.poll(timeout_ms=500).values():
        if commits_first:
            consumer.commit()
        for record in records:
            time.sleep(0.1)
            with sqlite3.connect("bills") as bills:
                bills.execute("insert into bills values (?)", (record.value,))
        consumer.commit()
"""
CHECK = """
import os, sqlite3, sys, time
from kafka import KafkaProducer

if os.path.exists("bills"):
    os.remove("bills")
with sqlite3.connect("bills") as bills:
    bills.execute("create table bills (number)")
producer = KafkaProducer(bootstrap_servers="localhost:9092", acks="all")
for number in range(8):
    producer.send("orders", b"%d" % number)
    time.sleep(1)
producer.close()
time.sleep(60)
with sqlite3.connect("bills") as bills:
    found = {row[0] for row in bills.execute("select number from bills")}
if len(found) < 8:
    sys.exit("an order was not billed")
"""
TOPOLOGY = "brokers: 3\ntopics: {orders: {}}\n"
Kcluster = Callable[..., tuple[int, str, str]]


@pytest.fixture
def search(kcluster: Kcluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kcluster:
    """`search("first", ...)` over a billing that commits first, or last."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    Path("billing.py").write_text(BILLING)
    Path("check.py").write_text(CHECK)
    Path("topology.yaml").write_text(TOPOLOGY)

    def call(order: str, *words: str) -> tuple[int, str, str]:
        apps = ("--app", f"billing=billing.py {order}", "--app", "check=check.py")
        limits = ("--for", "90s", "--jobs", "1", "--kill", "billing")
        return kcluster("search", *apps, *limits, "--topology", "topology.yaml", *words)

    return call


@pytest.mark.slow
@pytest.mark.timeout_s(900)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python's imports
def test_search__finds_a_commit_that_comes_too_early(search: Kcluster, kcluster: Kcluster) -> None:
    code, out, error = search("first", "--runs", "40")
    assert code == 1, out + error
    assert "program check ended with exit code 1: an order was not billed.\n" in out
    assert "Without faults, the programs end well. It needs one step: kill app billing" in out
    replay = re.search(r"^replay: kcluster (.*)$", out, re.MULTILINE)
    assert replay is not None
    code, out, _ = kcluster(*shlex.split(replay[1]))
    assert code == 1
    assert "program check: ended after" in out


@pytest.mark.long
@pytest.mark.timeout_s(900)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python's imports
def test_search__of_a_sound_program(search: Kcluster) -> None:
    code, out, error = search("last", "--runs", "2")
    assert (code, out) == (0, "2 runs with faults, none failed\n"), out + error


def test_search__names_programs_that_exist(search: Kcluster) -> None:
    code, _, error = search("last", "--kill", "biling")
    assert code == 2
    assert "--kill biling: no such program; did you mean billing?" in error
