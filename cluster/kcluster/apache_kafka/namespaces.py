"""A network of its own for the nodes of a real Kafka: a namespace for each, on one bridge.

Owns: the namespaces, their addresses, cuts and shapes of the links between nodes, and between a
node and the clients on this machine.  Never: chooses what is cut.
Kafka: no counterpart; ip-netns(8), tc-htb(8), tc-netem(8).

Each direction of a link is a class of the sender's device (htb), to which the receiver's address
leads.  In the class a queue without any room drops everything: a cut; netem delays and loses, or,
where the kernel does not have it, slow_links.py before the class.  A packet that is dropped is lost
as on a wire: connections stay, TCP retransmits.  HOST stands for this machine, where clients are:
what it sends to a node leaves through the node's port of the bridge.
"""

from __future__ import annotations

import ipaddress
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from kcluster.apache_kafka import slow_links
from kcluster.network.shapes import LinkShape
from kcluster.operations.errors import ClusterError

_TUN: Final = "/dev/net/tun"
_NO_LATENCY: Final = (
    "latency, jitter and loss on the real ground need the kernel's sch_netem, or /dev/net/tun"
)
HOST: Final = 0
"""The number of this machine among the ends of links; no node has it."""
NEEDED: Final = "network faults on the real ground need root on Linux"
DEVICE: Final = "eth0"
"""The device of a node, in its namespace."""
MAX_NODES: Final = 250
_FIRST: Final = 2
"""The last number of the first node's address; the bridge has .1."""
_UNLIMITED: Final = "40gbit"
_QUANTUM: Final = "quantum 60000"
"""The bytes of one turn of a class: tc warns of its default, which follows from the rate."""
_ROOM_PACKETS: Final = 100_000
_LIMIT_S: Final = 20
_TRIES: Final = 20

Told = Callable[[str, str], None]
"""Tells the reaper of a thing: kind, name."""


class LinkTraffic(Struct, frozen=True):
    """One direction of a link."""

    is_cut: bool = False
    shape: LinkShape = LinkShape()


class NodeNetwork:
    """The network of one cluster.  `reason`: why latency, jitter and loss are not possible, if they
    are not."""

    def __init__(self, node_ids: Sequence[int], tell: Told) -> None:
        """`tell` is told of each thing before it is made.  ClusterError if there can be none here,
        which `check_possible` does not know."""
        if len(node_ids) > MAX_NODES:
            raise ClusterError(f"{len(node_ids)} nodes; at most {MAX_NODES} can have addresses")
        self._numbers: Final = {id_: _FIRST + at for at, id_ in enumerate(node_ids)}
        self._key = secrets.token_hex(3)
        self._net = free_net(_taken_nets(), secrets.randbelow)
        self._links: dict[tuple[int, int], LinkTraffic] = {}
        self._ready: set[tuple[str | None, str]] = set()
        self._filters: dict[tuple[int, int], str] = {}
        """Where the packets of each direction go: to their class, or to a device."""
        self._beside: subprocess.Popen[str] | None = None
        """The program that delays packets, if the kernel cannot."""
        tell("mark", self._mark)
        tell("link", self._bridge)
        for node_id in node_ids:
            tell("link", self._port(node_id))  # a namespace takes it along, but only later
            tell("namespace", self.namespace(node_id))
        _batch("ip", None, self._commands())
        for node_id in node_ids:
            _batch("ip", self.namespace(node_id), self._commands_inside(node_id))
        self._has_netem = self._tries("netem delay 1ms")
        self.reason = None if self._has_netem or os.path.exists(_TUN) else _NO_LATENCY

    def close(self) -> None:
        """End the program that delays packets; the reaper removes everything else."""
        if self._beside is not None:
            assert self._beside.stdin is not None
            assert self._beside.stdout is not None
            self._beside.stdin.close()
            self._beside.stdout.close()
            self._beside.wait()
            self._beside = None

    # -------------------------------------------------------------------------- what it is

    @property
    def _bridge(self) -> str:
        return f"kc{self._key}"

    def namespace(self, node_id: int) -> str:
        """The namespace of a node."""
        return f"kcluster-{self._key}-{node_id}"

    def address(self, node_id: int) -> str:
        """The address of a node, or of HOST, as every end of a link sees it."""
        return str(self._net[1 if node_id == HOST else self._numbers[node_id]])

    def command(self, node_id: int) -> list[str]:
        """What comes before a command that runs in the namespace of a node."""
        return ["ip", "netns", "exec", self.namespace(node_id)]

    # ------------------------------------------------------------------------ what happens

    def cut(self, a: int, b: int) -> None:
        """Drop everything that `a` sends to `b`."""
        self._change(a, b, LinkTraffic(True, self.state(a, b).shape))

    def heal(self, a: int, b: int) -> None:
        """Undo the cut of what `a` sends to `b`."""
        self._change(a, b, LinkTraffic(False, self.state(a, b).shape))

    def shape(self, a: int, b: int, shape: LinkShape = LinkShape()) -> None:  # frozen
        """Delay and lose what `a` sends to `b`, in place of an earlier shape.  ClusterError if this
        kernel cannot."""
        if self.reason is not None and uses_netem(shape):
            raise ClusterError(self.reason)
        if shape.distribution not in ("constant", "uniform") and shape.jitter_us:
            raise ClusterError(f"jitter on the real ground is uniform, not {shape.distribution}")
        self._change(a, b, LinkTraffic(self.state(a, b).is_cut, shape))

    def state(self, a: int, b: int) -> LinkTraffic:
        """What holds for what `a` sends to `b`."""
        return self._links.get((a, b), LinkTraffic())

    # -------------------------------------------------------------------------- the inside

    def _port(self, node_id: int) -> str:
        """The end of a node's wire at the bridge."""
        return f"kc{self._key}-{self._numbers[node_id]}"

    def _commands(self) -> list[str]:
        commands = [
            f"link add {self._bridge} type bridge",
            f"addr add {self.address(HOST)}/24 dev {self._bridge}",
            f"link set {self._bridge} up",
        ]
        for node_id in self._numbers:
            name, port = self.namespace(node_id), self._port(node_id)
            commands += [
                f"netns add {name}",
                f"link add {port} type veth peer name {DEVICE} netns {name}",
                f"link set {port} master {self._bridge} up",
            ]
        return commands

    def _commands_inside(self, node_id: int) -> list[str]:
        return [
            f"addr add {self.address(node_id)}/24 dev {DEVICE}",
            f"link set {DEVICE} up",
            "link set lo up",
        ]

    def _change(self, a: int, b: int, state: LinkTraffic) -> None:
        if a == b:
            return
        if state == self.state(a, b):
            return
        namespace = None if a == HOST else self.namespace(a)
        device = self._port(b) if a == HOST else DEVICE
        number = 1 if b == HOST else self._numbers[b]
        match = f"src {self.address(HOST)}" if a == HOST else f"dst {self.address(b)}"
        target = f"flowid 1:{number:x}"
        if uses_netem(state.shape) and self._has_netem:
            # Otherwise netem loses up to 64 kB at once, which the device would cut into packets.
            _batch("ip", namespace, [f"link set {device} gso_max_segs 1"])
        elif uses_netem(state.shape):
            tap = f"kct{self._key}{self._numbers.get(a, 1):x}-{number:x}"
            self._delay(tap, namespace, device, number, state.shape)
            target = f"action mirred egress redirect dev {tap}"
        commands = []
        if (namespace, device) not in self._ready:
            commands.append(f"qdisc add dev {device} root handle 1: htb")
        if (a, b) not in self._filters:
            commands.append(class_command(device, number))
        elif self._filters[a, b] != target:
            commands.append(f"filter del dev {device} parent 1: prio {number}")
        if self._filters.get((a, b)) != target:
            commands.append(filter_command(device, number, match, target))
        commands += state_commands(device, number, state, has_netem=self._has_netem)
        _batch("tc", namespace, commands)
        self._ready.add((namespace, device))
        self._filters[a, b] = target
        self._links[a, b] = state

    @property
    def _mark(self) -> str:
        """A text in the command line of the program that delays packets, for the reaper."""
        return f"kcluster-links-{self._key}"

    def _delay(
        self, tap: str, namespace: str | None, device: str, number: int, shape: LinkShape
    ) -> None:
        """Let the program delay the packets that come to a device of it."""
        if self._beside is None:
            program = [sys.executable, "-I", "-S", slow_links.__file__, self._mark]
            self._beside = subprocess.Popen(
                program,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        told = {
            "tap": tap,
            "namespace": namespace,
            "device": device,
            "priority": 1 << 16 | number,
            "latency_us": shape.latency_us,
            "jitter_us": shape.jitter_us,
            "loss": shape.loss,
        }
        assert self._beside.stdin is not None
        assert self._beside.stdout is not None
        try:
            self._beside.stdin.write(f"{json.dumps(told)}\n")
            self._beside.stdin.flush()
            answer = self._beside.stdout.readline().strip()
        except OSError as error:
            answer = str(error)
        if answer != "ready":
            raise ClusterError(f"links cannot be slow here: {answer or 'the program ended'}")

    def _tries(self, qdisc: str) -> bool:
        """Whether the kernel has a queueing discipline."""
        try:
            _batch("tc", None, [f"qdisc add dev {self._bridge} root {qdisc}"])
        except ClusterError:
            return False
        _batch("tc", None, [f"qdisc del dev {self._bridge} root"])
        return True


# -------------------------------------------------------------------------------- commands


def class_command(device: str, number: int) -> str:
    """The command of tc that makes a class for one direction of a link."""
    class_ = f"classid 1:{number:x} htb rate {_UNLIMITED} {_QUANTUM}"
    return f"class add dev {device} parent 1: {class_}"


def filter_command(device: str, number: int, match: str, target: str) -> str:
    """The command of tc that leads the packets of one direction to their class, or elsewhere."""
    return (
        f"filter add dev {device} parent 1: prio {number} protocol ip u32 match ip {match} {target}"
    )


def state_commands(device: str, number: int, state: LinkTraffic, *, has_netem: bool) -> list[str]:
    """The commands of tc that bring the class of a direction into a state."""
    shape, parent = state.shape, f"dev {device} parent 1:{number:x}"
    bits_per_s = shape.bytes_per_s * 8
    rate = f"{bits_per_s}bit" if bits_per_s else _UNLIMITED
    if state.is_cut:
        queue = "pfifo limit 0"
    elif has_netem and uses_netem(shape):
        queue = f"netem limit {_ROOM_PACKETS} delay {shape.latency_us}us"
        if shape.jitter_us:
            queue += f" {shape.jitter_us}us"
        if shape.loss:
            queue += f" loss {shape.loss * 100:g}%"
    else:
        queue = f"pfifo limit {_ROOM_PACKETS}"
    return [
        f"class change dev {device} parent 1: classid 1:{number:x} htb rate {rate} {_QUANTUM}",
        f"qdisc replace {parent} {queue}",
    ]


def uses_netem(shape: LinkShape) -> bool:
    """Whether a shape is more than a rate."""
    return bool(shape.latency_us or shape.jitter_us or shape.loss)


def check_possible() -> None:
    """ClusterError if this process may not make network namespaces, or has no programs for it."""
    if not sys.platform.startswith("linux"):
        raise ClusterError(f"{NEEDED}; this is {sys.platform}")
    if os.geteuid() != 0:
        raise ClusterError(f"{NEEDED}; this process is not root")
    for program in ("ip", "tc"):
        if shutil.which(program) is None:
            raise ClusterError(f"{NEEDED}, with `ip` and `tc` (iproute2); there is no `{program}`")


def free_net(
    taken: Iterable[ipaddress.IPv4Network], below: Callable[[int], int]
) -> ipaddress.IPv4Network:
    """A private network of 254 addresses that overlaps none of `taken`.  `below(n)`: a random
    number."""
    nets = list(taken)
    for _ in range(_TRIES):
        net = ipaddress.IPv4Network((0x0A_80_00_00 + (below(1 << 15) << 8), 24))
        if not any(net.overlaps(other) for other in nets):
            return net
    raise ClusterError("no network in 10.128.0.0/9 is free")


def _taken_nets() -> list[ipaddress.IPv4Network]:
    listed = _run(["ip", "-4", "-o", "route", "show", "table", "all"])
    nets = []
    for line in listed.splitlines():
        word = line.split(maxsplit=1)[0]
        if word[0].isdigit():
            nets.append(ipaddress.IPv4Network(word, strict=False))
    return nets


def _batch(program: str, namespace: str | None, commands: Sequence[str]) -> None:
    """Run commands of `ip` or `tc`, in one process, in a namespace."""
    inside = [] if namespace is None else ["-n", namespace]
    _run([program, *inside, "-batch", "-"], "".join(f"{one}\n" for one in commands))


def _run(command: Sequence[str], text: str = "") -> str:
    try:
        ended = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{command[0]} failed: {error}") from error
    if ended.returncode:
        lines = [line for line in ended.stderr.splitlines() if line.strip()]
        reason = next((line for line in lines if "Warning" not in line), "it failed")
        raise ClusterError(f"{command[0]} failed: {reason}")
    return ended.stdout
