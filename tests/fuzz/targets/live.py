"""`kcluster up` in a process of its own: frames over TCP, requests to its door and to its page.

Owns: the process, the steps, what must hold after them: it lives, every broker answers
ApiVersions, verdict and save work, stderr has no traceback, memory and CPU stay within bounds.
Never: makes up input (frames.py and requests.py do).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct
from msgspec.structs import replace

import kcluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from kcluster.protocol.releases import latest
from tests.fuzz.episodes import CPU, Failure, of_traceback, packed, shorter, unpacked
from tests.fuzz.frames import made_up_frame
from tests.fuzz.requests import TOKEN, made_up_http
from tests.fuzz.targets.brokers import LANES, Closed, Sent, topic_ids
from tests.fuzz.targets.http import DEEP, Asked, answer_on, answer_to
from tests.fuzz.values import COMPACTED, TOPIC, MadeUp

STEPS: Final = 400
CODE: Final = str(Path(kcluster.__file__).parents[1])
NAME: Final = "fuzzed"
CHEAP_S: Final = 30.0
"""On a busy machine."""
STEP_CPU_S: Final = 3.0
"""Of the whole process: background work and verbs such as `save` count."""
MEMORY_BYTES: Final = 1 << 30
"""Of the process at the end.  What it was sent is 20 MB."""
TOPOLOGY: Final = f"""\
brokers: 3
profile: fast
topics:
  {TOPIC}: {{partitions: 2, replication_factor: 3}}
  {COMPACTED}: {{replication_factor: 3, config: {{cleanup.policy: compact}}}}
"""


class AskedAtDoor(Struct, tag="door"):
    """A request over the unix socket, as Latin-1."""

    text: str

    def smaller(self) -> Iterator[AskedAtDoor]:
        """With fewer bytes."""
        for size in shorter(len(self.text)):
            yield replace(self, text=self.text[:size])


Step = Sent | Closed | AskedAtDoor | Asked


class Live:
    """The target."""

    name = "live"
    step = Step

    def draw(self, rng: Random) -> list[Step]:
        """Mostly frames."""
        made_up = MadeUp(rng, topic_ids(), old_formats=False)
        steps: list[Step] = []
        for _ in range(STEPS):
            kind = rng.random()
            if kind < 0.85:
                frame = made_up_frame(made_up, latest())
                steps.append(Sent(rng.randint(1, 3), rng.randrange(LANES), packed(frame)))
            elif kind < 0.9:
                steps.append(Closed(rng.randint(1, 3), rng.randrange(LANES)))
            else:
                text = made_up_http(rng).replace("/c1", f"/{NAME}")
                if not text.startswith(f"DELETE /v1/clusters/{NAME}"):  # that is the end
                    steps.append(AskedAtDoor(text) if kind < 0.96 else Asked(text))
        return steps

    def play(self, steps: Sequence[Step]) -> Failure | None:
        """Do them to a fresh process."""
        with tempfile.TemporaryDirectory(prefix="kc", dir="/tmp") as parent:
            process = Process(Path(parent))
            try:
                return process.failure(steps)
            finally:
                process.end()


class Process:
    """A `kcluster up` with its lanes."""

    def __init__(self, parent: Path) -> None:
        directory = parent / DEEP
        directory.mkdir(parents=True)
        (parent / "runtime").mkdir()
        (directory / "topology.yaml").write_text(TOPOLOGY)
        self.environment = {
            **os.environ,
            "PYTHONPATH": CODE,
            "XDG_RUNTIME_DIR": str(parent / "runtime"),
            "KCLUSTER_NAME": NAME,
        }
        self.directory = directory
        self.stderr = parent / "stderr"
        self.door = str(parent / "runtime" / "kcluster" / f"{NAME}.sock")
        words = ("up", "topology.yaml", "--base-port", "0", "--name", NAME, "--json", "--page")
        with self.stderr.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kcluster", *words],
                cwd=directory,
                env=self.environment,
                stdout=subprocess.PIPE,
                stderr=err,
            )
        assert self.process.stdout is not None
        ready = json.loads(self.process.stdout.readline())
        page = urlsplit(json.loads(self.process.stdout.readline())["page"])
        self.ports = {one["id"]: one["port"] for one in ready["brokers"]}
        self.page_port, self.token = page.port or 0, parse_qs(page.query)["token"][0]
        self.lanes: dict[tuple[int, int], socket.socket] = {}

    def failure(self, steps: Sequence[Step]) -> Failure | None:
        """Do the steps; what failed."""
        for step in steps:
            before_s = self.cpu_s()
            self.do(step)
            if isinstance(step, Sent) and self.cpu_s() - before_s > STEP_CPU_S:
                return Failure(CPU, f"{self.cpu_s() - before_s:.1f} s for {step.bytes[:64]}")
            if self.process.poll() is not None:
                break
        failure = self.problem()
        # Some request may have asked for the end in a way that `draw` did not see.
        return None if self.process.poll() == 0 and "Traceback" not in self.printed() else failure

    def printed(self) -> str:
        """Its stderr so far."""
        return self.stderr.read_text(errors="replace")

    def do(self, step: Step) -> None:
        """One step."""
        with contextlib.suppress(OSError):  # whatever a client may do, a broker may hang up
            if isinstance(step, Sent):
                self.send(step)
            elif isinstance(step, Closed):
                lane = self.lanes.pop((step.broker, step.lane), None)
                if lane is not None:
                    lane.close()
            elif isinstance(step, AskedAtDoor):
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.connect(self.door)
                    answer_on(sock, step.text)
            else:
                answer_to(self.page_port, step.text.replace(TOKEN, self.token))

    def send(self, step: Sent) -> None:
        """Write to a lane; one that the broker has closed is opened again."""
        key = step.broker, step.lane
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = socket.create_connection(
                ("127.0.0.1", self.ports[step.broker]), timeout=0.2
            )
        try:
            lane.sendall(unpacked(step.bytes))
            while select.select([lane], [], [], 0)[0]:
                if not lane.recv(1 << 20):
                    raise ConnectionResetError
        except OSError:
            self.lanes.pop(key).close()

    def answer(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """The answer at the door; OSError if there is none in time, or it is a refusal."""
        text = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} /v1/clusters/{NAME}{path} HTTP/1.0\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(text)}\r\n\r\n"
        )
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(CHEAP_S)
            sock.connect(self.door)
            sock.sendall(head.encode() + text)
            answer = sock.makefile("rb").read()
        fields, _, value = answer.partition(b"\r\n\r\n")
        if not fields.split()[1:2] or not fields.split()[1].startswith(b"2"):
            raise OSError(answer[:500])
        found: dict[str, Any] = json.loads(value)
        return found

    def problem(self) -> Failure | None:
        """What is wrong now."""
        printed = self.printed()
        if "Traceback" in printed:
            return of_traceback(printed)
        if self.process.poll() is not None:
            return Failure(f"ended with exit code {self.process.returncode}", printed[-2_000:])
        self.repair()
        for broker in self.ports:
            if not self.answers(broker):
                return Failure("no answer", f"broker {broker} does not answer ApiVersions")
        save = ("POST", "/save", {"directory": "at-the-end"})
        for method, path, body in (("GET", "/verdict", None), save):
            try:
                self.answer(method, path, body)
            except OSError as error:
                return Failure("no answer", f"{path}: {error}")
        memory_bytes = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * 4096
        if memory_bytes > MEMORY_BYTES:
            return Failure("memory", f"{memory_bytes / 1e6:.0f} MB")
        printed = self.printed()
        return of_traceback(printed) if "Traceback" in printed else None

    def repair(self) -> None:
        """Undo what requests may have broken on purpose."""
        for path, body in (("/clock", {"resume": True}), ("/clock", {"speed": 1}), ("/heal", {})):
            with contextlib.suppress(OSError):
                self.answer("POST", path, body)

    def answers(self, broker: int) -> bool:
        """Whether a broker that is up answers ApiVersions; one that was killed need not."""
        request = encode_request_frame(ApiKey.API_VERSIONS, 0, 1, "sane", m.ApiVersionsRequest())
        try:
            with socket.create_connection(
                ("127.0.0.1", self.ports[broker]), timeout=CHEAP_S
            ) as sock:
                sock.sendall(b"".join(request))
                return sock.recv(8)[4:] == b"\0\0\0\1"
        except OSError:
            return False

    def cpu_s(self) -> float:
        """CPU time of the process so far."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """Stop the process."""
        for lane in self.lanes.values():
            lane.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(10)
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
