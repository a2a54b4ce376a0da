"""`kcluster simulate`: whole programs in virtual time."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import CODE

Simulate = Callable[..., tuple[int, str, str]]

SHOP = """
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
from kafka import KafkaConsumer, KafkaProducer

def read(count):
    consumer = KafkaConsumer("orders", bootstrap_servers=os.environ["KCLUSTER_BOOTSTRAP"],
                             client_id="billing", group_id="billing", auto_offset_reset="earliest")
    while count > 0:
        count -= sum(map(len, consumer.poll(timeout_ms=500).values()))
    consumer.close()
    return "all read"

reading = ThreadPoolExecutor().submit(read, int(sys.argv[1]))
producer = KafkaProducer(bootstrap_servers="localhost:9092", client_id="shop", acks="all")
for number in range(int(sys.argv[1])):
    producer.send("orders", b"order %d" % number)
    time.sleep(1)
print("sent in", os.environ["SHOP"])
print(reading.result())
"""
LEADER_DIES = """
topology:
  brokers: 3
  topics:
    orders: {partitions: 3, replication_factor: 3}
steps:
  - at: 5s
    kill: leader(orders-0)
"""


@pytest.fixture
def simulate(
    kcluster: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Simulate:
    """`simulate("app.py", "--for", "5s")` in a folder of its own; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    return lambda *words: kcluster("simulate", *words)


def write(**files: str) -> None:
    for name, text in files.items():
        Path(f"{name}.py").write_text(text)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python's imports
def test_simulate__a_program_survives_the_death_of_a_leader(simulate: Simulate) -> None:
    write(shop=SHOP)
    Path("dies.yaml").write_text(LEADER_DIES)
    more = ("--env", "SHOP=Lima", "--out", "runs", "--trace", "wire.txt")
    code, out, err = simulate("shop.py", "--scenario", "dies.yaml", *more, "--", "30")

    assert code == 0, out + err
    lines = out.splitlines()
    assert lines[0] == (
        "brokers: brokers.kcluster:9092,brokers.kcluster:9093,brokers.kcluster:9094"
        "  (KCLUSTER_BOOTSTRAP)"
    )
    assert "   +5000 ms  broker_down            broker 2     process killed" in out
    sent = next(line for line in lines if "sent in" in line)
    assert sent.endswith("ms  shop | sent in Lima")
    assert 30_000 <= int(sent.split()[0]) < 45_000, "virtual time"
    assert any(line.endswith("shop | all read") for line in lines)
    assert "dies: valid, as expected  (virtual, seed 1, " in out
    assert "sent 30  acked 30  failed 0  unknown 0  read 30" in out
    replay = "kcluster simulate shop.py --env SHOP=Lima --scenario dies.yaml --seed 1 -- 30"
    assert f"  replay: {replay}" in lines
    run = Path("runs/latest")
    info = json.loads((run / "run.json").read_text())
    assert info["replay"] == replay
    assert info["environment"]["PYTHONHASHSEED"] == "0"
    exchanges = (run / "exchanges.jsonl").read_text()
    assert '"billing"' in exchanges
    assert '"shop"' in exchanges
    assert '"billing"' in (run / "groups.jsonl").read_text()
    assert '"shop"' in (run / "beliefs.jsonl").read_text()
    trace = Path("wire.txt").read_text().splitlines()
    assert any(" > Produce v" in line and " shop " in line for line in trace)
    assert f"  trace {info['trace_hash']}, {len(trace)} lines" in lines


def test_simulate__each_program_has_its_own_arguments_and_main(simulate: Simulate) -> None:
    write(
        settings="",
        one="import settings, sys, time\nmine = sys.argv[1:]\ntime.sleep(2)\n"
        "print(mine, sys.argv[1:])\n"
        "print(sys.modules['__main__'].mine, __name__, repr(sys.stdin.read()))",
        two="import settings, sys, threading, time\nmine = 2\ntime.sleep(1)\n"
        "threading.Thread(target=lambda: print(sys.argv) or time.sleep(9)).start()\n"
        "sys.exit('not my day')",
    )
    code, out, err = simulate("--app", "a=one.py x 'y z'", "--app", "longer=two.py", "--seed", "3")

    assert code == 1
    assert err.startswith("kcluster: the programs a, longer share the module settings: ")
    assert "   +1000 ms  longer | ['two.py']\n" in out
    assert "   +1000 ms  longer | not my day\n" in err
    assert "   +2000 ms  a      | ['x', 'y z'] ['x', 'y z']\n" in out
    assert "   +2000 ms  a      | ['x', 'y z'] __main__ ''\n" in out
    assert "  program a: ended after 2.000 s, exit code 0" in out
    assert "  program longer: ended after 10.000 s, exit code 1" in out
    assert "  FAILED program longer ended with exit code 1: not my day\n" in out


def test_simulate__a_module_runs_as_with_python_m(simulate: Simulate) -> None:
    package = Path("shop")
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "prices.py").write_text("PRICE = 7")
    (package / "__main__.py").write_text(
        "import sys\nfrom .prices import PRICE\nprint(__package__, PRICE, sys.argv[1:])\n"
    )
    code, out, _ = simulate("-m", "shop", "--", "--fast")

    assert code == 0
    assert "shop | shop 7 ['--fast']\n" in out
    assert "shop: unknown, as expected" in out, "it need not use Kafka"


ENDINGS = {
    "a traceback, as Python has it": (
        "def f():\n    raise ValueError('too\\nlong')\nf()\n",
        1,
        "app | Traceback (most recent call last):\n"
        '      +0 ms  app |   File "app.py", line 3, in <module>\n',
        "  FAILED program app ended with exit code 1: ValueError: too\n",
    ),
    "a deadlock names its thread": (
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()\n",
        1,
        "",
        "  FAILED deadlock: no thread can go on; what each waits for:\n"
        "    app waits for a lock, app.py:4 in <module>\n",
    ),
    "it never ends": (
        "import time\nwhile True:\n    time.sleep(1)\n",
        0,
        "",
        "  program app: still ran at the end\n"
        "  thread left: app waits for a time to pass (1 s), app.py:3 in <module>\n",
    ),
    "it handles SIGTERM": (
        "import signal, threading\nstop = threading.Event()\n"
        "signal.signal(signal.SIGTERM, lambda *_: stop.set())\nstop.wait()\n",
        0,
        "",
        "  program app: ended after 20.000 s, exit code 0\n",
    ),
    "its asyncio loop handles SIGTERM, and an exception ends it": (
        "import asyncio, signal, sys\n"
        "async def main():\n"
        "    stop = asyncio.Event()\n"
        "    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)\n"
        "    await stop.wait()\n"
        "    sys.exit(4)\n"
        "asyncio.run(main())\n",
        4,
        "",
        "  FAILED program app ended with exit code 4\n",
    ),
    "its handler of SIGTERM exits": (
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "time.sleep(1000)\n",
        5,
        "",
        "  program app: ended after 20.000 s, exit code 5\n",
    ),
    "it ends as web servers do: its main thread handles SIGTERM, then raises it once more": (
        "import os, signal, threading, time\nasked = []\n"
        "assert threading.current_thread() is threading.main_thread()\n"
        "signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))\n"
        "signal.raise_signal(signal.SIGTERM)\nos.kill(os.getpid(), signal.SIGTERM)\n"
        "while len(asked) < 3:\n    time.sleep(1)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\nprint('over')\n"
        "signal.raise_signal(signal.SIGTERM)\nprint('never')\n",
        0,
        "",
        "  program app: ended after 21.000 s, exit code 0\n",
    ),
    "it ends itself by a signal": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n",
        143,
        "",
        "  FAILED program app ended with exit code 143: SIGTERM\n",
    ),
    "threads and atexit come after its last line": (
        "import atexit, threading\natexit.register(print, 'good night')\n"
        "threading.Timer(3, print, ['a timer']).start()\nprint('over')\n",
        0,
        "",
        "   +3000 ms  app | a timer\n   +3000 ms  app | good night\n",
    ),
    "what it asks for in vain, and goes on without": (
        "import subprocess\ntry:\n    subprocess.run(['true'])\nexcept Exception:\n    pass\n",
        0,
        "",
        "  refused: a process has a clock and sockets of its own: subprocess cannot be used",
    ),
    "a process of its own": (
        "import subprocess\nsubprocess.run(['true'])\n",
        1,
        "app | app.py:2: a process has a clock and sockets of its own",
        "  FAILED program app ended with exit code 1: app.py:2: a process has a clock",
    ),
    "a client written in C": (
        "from confluent_kafka import Producer\nProducer({'bootstrap.servers': 'localhost:9092'})\n",
        1,
        "app | app.py:2: confluent_kafka does its I/O in C",
        "  FAILED program app ended with exit code 1: app.py:2: confluent_kafka does its I/O in C",
    ),
}


@pytest.mark.parametrize("story", ENDINGS.values(), ids=ENDINGS.keys())
def test_simulate__how_a_program_ends(simulate: Simulate, story: tuple[str, int, str, str]) -> None:
    text, exit_code, on_stderr, on_stdout = story
    if "confluent_kafka" in text:
        pytest.importorskip("confluent_kafka")
    write(app=text)
    code, out, err = simulate("app.py", "--for", "20s", "--brokers", "1")
    assert (code, on_stderr in err, on_stdout in out) == (exit_code, True, True), out + err


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "no program": ((), "no program is given"),
    "no such file": (("nowhere.py",), "nowhere.py: cannot be read: No such file or directory"),
    "no such module": (("-m", "no_such.thing"), "-m no_such.thing: no such module"),
    "no name": (("--app", "one.py"), "--app one.py: write NAME=FILE"),
    "both ways": (("--app", "a=app.py", "app.py"), "app.py: with --app, every program is an"),
    "one name twice": (("--app", "a=app.py", "--app", "a=app.py"), "two programs have this name"),
    "no unit": (("app.py", "--for", "5"), "--for 5: 5 what? Write 5ms, 5s or 5m"),
    "no time": (("app.py", "--for", "0s"), "--for 0s: it must be longer than nothing"),
    "no factor": (("app.py", "--compute", "fast"), "--compute fast: it must be random, or a"),
    "no value": (("app.py", "--env", "KEY"), "--env KEY: write KEY=VALUE"),
    "scenario": (("app.py", "--scenario", "bad.yaml"), "bad.yaml:3:5 steps[0].kil"),
    "topology": (("app.py", "--topology", "bad.yaml"), "bad.yaml:1:1 "),
    "two topologies": (
        ("app.py", "--scenario", "dies.yaml", "--brokers", "3"),
        "--brokers: a scenario has a topology of its own, which only --topology FILE replaces",
    ),
    "one module name for two": (
        ("--app", "a=app.py", "--app", "b=other/app.py"),
        "two programs import a module helpers: ",
    ),
    "a trace of many": (("app.py", "--seeds", "3", "--trace", "t"), "--seeds: --trace is for one"),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_simulate__wrong_uses_are_one_line(
    simulate: Simulate, wrong: tuple[tuple[str, ...], str]
) -> None:
    words, text = wrong
    write(app="import helpers", helpers="")
    Path("other").mkdir()
    for name in ("app.py", "helpers.py"):
        Path("other", name).write_text(Path(name).read_text())
    Path("bad.yaml").write_text("steps:\n  - at: 5s\n    kil: 1\n")
    Path("dies.yaml").write_text(LEADER_DIES)
    code, out, err = simulate(*words)
    assert (code, out) == (2, "")
    assert text in err
    assert len(err.splitlines()) <= 2


def test_simulate__a_scenario_that_does_nothing_has_shown_nothing(simulate: Simulate) -> None:
    write(short="", longer="import time\ntime.sleep(6)\n")
    Path("dies.yaml").write_text(f"{LEADER_DIES}  - at: 9s\n    start: down brokers\n")

    code, out, _ = simulate("short.py", "--scenario", "dies.yaml")
    assert code == 2
    assert "  FAILED the programs ended before the first step of the scenario\n" in out
    code, out, _ = simulate("longer.py", "--scenario", "dies.yaml")
    assert code == 0
    assert "  not performed, because the programs had ended: 1 of the scenario's 2 steps\n" in out


def test_simulate__of_many_seeds_the_first_that_fails_is_shown(simulate: Simulate) -> None:
    write(app="import random, sys\nsys.exit(3 if random.random() < 0.3 else 0)\n")
    many = ("app.py", "--brokers", "1", "--seeds", "30", "--seed", "10", "--out", "runs")
    code, out, _ = simulate(*many)

    assert code == 3
    failed = int(out.rpartition("seed ")[2].split()[0])
    assert f"seed {failed} of 10 to 39 failed" in out
    (run,) = Path("runs").glob("app-*")
    assert json.loads((run / "run.json").read_text())["seed"] == failed
    code, again, _ = simulate("app.py", "--brokers", "1", "--seed", str(failed))
    assert code == 3
    (trace,) = re.findall(r"trace \w{16}", again)
    assert trace in (run / "run.json").read_text().replace('trace_hash": "', "trace ")
    for seed in range(10, failed):
        assert simulate("app.py", "--brokers", "1", "--seed", str(seed))[0] == 0


def test_simulate__two_fresh_processes_have_the_same_trace(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "from kafka import KafkaProducer\n"
        "producer = KafkaProducer(bootstrap_servers='localhost:9092')\n"
        "for word in {'a', 'b', 'c', 'd', 'e'}:\n"
        "    producer.send('words', word.encode()).get()\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    command = (sys.executable, "-m", "kcluster", "simulate", "app.py", "--check-determinism")
    done = subprocess.run(
        command, cwd=tmp_path, env={**environment, "PYTHONPATH": CODE}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.startswith("deterministic: two runs, in fresh processes, with the same ")
    assert done.stderr.count("started again with PYTHONHASHSEED=0") == 1


def test_simulate__ctrl_c_ends_a_program_that_never_waits(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print('busy')\nwhile True:\n    pass\n")
    process = subprocess.Popen(
        (sys.executable, "-m", "kcluster", "simulate", "app.py", "--brokers", "1"),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": CODE, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert any(b"busy" in line for line in process.stdout)
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
    assert process.returncode == 130


BILLING_DIES = """
topology:
  brokers: 3
  topics: {orders: {}}
steps:
  - {when: 3rd commit of billing, delay: 10ms, kill: app billing}
  - {after: 2s, start: app billing}
  - {at: 40s, kill: app billing, for: 1s}
"""
BILLING = """
import os
from kafka import KafkaConsumer
import prices

print("life begins with", prices.known)
consumer = KafkaConsumer("orders", bootstrap_servers=os.environ["KCLUSTER_BOOTSTRAP"],
                         group_id="billing", auto_offset_reset="earliest",
                         enable_auto_commit=False, session_timeout_ms=6000)
try:
    for record in consumer:
        prices.known.append(record.offset)
        print("billed", record.offset)
        consumer.commit()
finally:
    print("never printed")
"""
ORDERS = """
import time
from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers="localhost:9092", acks="all")
for number in range(30):
    producer.send("orders", b"%d" % number)
    time.sleep(2)
producer.close()
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of kafka-python's imports
def test_programs__die_and_start_again_by_steps(simulate: Simulate, tmp_path: Path) -> None:
    Path("dies.yaml").write_text(BILLING_DIES)
    Path("billing.py").write_text(BILLING)
    Path("prices.py").write_text("known = []\n")
    Path("orders.py").write_text(ORDERS)
    apps = ("--app", "billing=billing.py", "--app", "orders=orders.py")
    code, out, error = simulate(*apps, "--scenario", "dies.yaml", "--for", "70s")
    assert code == 0, out + error
    assert out.count("life begins with []") == 3  # its modules are new, too
    assert "never printed" not in out
    assert out.count("program_killed") == out.count("program_started") == 2
    assert "program billing: killed after 40.000 s, started again 1.000 s later" in out
    assert {f"billed {number}" for number in range(30)} <= set(re.findall(r"billed \d+", out))


def test_programs__that_a_step_names_must_exist(simulate: Simulate, tmp_path: Path) -> None:
    Path("dies.yaml").write_text(BILLING_DIES)
    Path("orders.py").write_text(ORDERS)
    code, _, error = simulate("--app", "biling=orders.py", "--scenario", "dies.yaml")
    assert code == 2
    assert (
        "dies.yaml:6:5 steps[0].kill: app billing: no such program; did you mean biling?" in error
    )
    assert "dies.yaml:7:5 steps[1].start: app billing" in error


TICKING = """
import time

began = time.monotonic()
for _ in range(10):
    time.sleep(1)
    print("tick", int(time.monotonic() - began))
"""


def test_programs__stand_still_until_they_are_resumed(simulate: Simulate, tmp_path: Path) -> None:
    steps = "[{at: 5500ms, pause: app ticking, for: 20s}]"
    Path("pauses.yaml").write_text(f"topology: {{brokers: 1}}\nsteps: {steps}\n")
    Path("ticking.py").write_text(TICKING)
    code, out, error = simulate("--app", "ticking=ticking.py", "--scenario", "pauses.yaml")
    assert code == 0, out + error
    ticks = [int(tick) for tick in re.findall(r"tick (\d+)", out)]
    assert ticks == [1, 2, 3, 4, 5, 25, 26, 27, 28, 29]
    assert out.count("program_paused") == out.count("program_resumed") == 1
