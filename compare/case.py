"""What a case is: a few lines of data, run once for each version of its API.

Owns: Case and the steps that it may be made of.  Never: talks to anybody (running.py does).

Values in bodies may be placeholders, strings in braces; filling.py has the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kcluster.protocol.apis import APIS, VERSIONS, ApiKey
from kcluster.protocol.codec.schema import Versions, parse_versions

Body = Mapping[str, Any]
"""Field values by name; structs are mappings, arrays lists.  What is not named has its default;
what a version does not have is left out."""

COORDINATOR = "coordinator"
"""As `to`: the broker that coordinates {group}."""
NOT_COORDINATOR = "not the coordinator"
CONTROLLER_ANY = 1
"""Who is asked for what the controller decides."""


class Ask(Struct, frozen=True):
    """One request; its answer is recorded in a conversation, and must be without error where it
    comes before a case."""

    api: ApiKey
    body: Body = {}
    version: int = -1
    """-1: the newest."""
    to: int | str = 1
    on: str = ""
    """Name of the connection; each broker has a connection of each name."""
    save: Mapping[str, str] = {}
    """Placeholders to be filled from now on -> where in the answer: `responses[0].member_id`."""
    later: bool = False
    """Do not wait for the answer; a `Hear` does."""
    retry: tuple[str, ...] = ()
    """Names of errors anywhere in the answer after which it is asked again, for a while."""
    until: str = ""
    """A text that the plain answer must contain: asked again while it does not."""
    client_id: str | None = "compare"
    note: str = ""
    """What happens here, for who reads the recorded answers."""
    may_fail: bool = False
    """Before a case: an error in the answer is what is wanted."""


class Hear(Struct, frozen=True):
    """Wait for the answer that a connection owes."""

    to: int | str
    on: str = ""
    save: Mapping[str, str] = {}
    note: str = ""


class Pass(Struct, frozen=True):
    """Let time pass."""

    duration_ms: int


class Deed(Struct, frozen=True):
    """Something done to a broker: `kill`, `stop` (cleanly), `start`; then wait until the cluster
    knows."""

    verb: str
    broker: int


class Close(Struct, frozen=True):
    """The client hangs up."""

    to: int | str
    on: str = ""


Step = Ask | Hear | Pass | Deed | Close


class Case(Struct, frozen=True):
    """One request in all its versions, what comes before it, and what it leaves behind."""

    name: str
    api: ApiKey
    body: Body | Callable[[int], Body] = {}
    """Or a function of the version."""
    versions: str = ""
    """`4-12`, `3+`, `7`, `3,9,13+`; empty: all that 4.3.1 serves."""
    to: int | str = 1
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    """Asked and recorded afterwards, on top of what running.py asks by itself."""
    mask: Mapping[str, str] = {}
    """Fields (by name, anywhere in the answer) that cannot be compared -> why."""
    bend: Callable[[bytes], bytes] | None = None
    """Changes the encoded request (without its length), for what no codec would write."""
    answered: bool = True
    """False: no answer is due (acks=0), do not wait long for one."""
    client_id: str | None = "compare"

    def each_version(self) -> list[int]:
        """The versions to be run, the newest unstable one left out."""
        low, high = served(self.api)
        wanted = [parse_versions(one) for one in self.versions.split(",") if one] or [(low, high)]
        found = [v for v in range(low, high + 1) if any(a <= v <= b for a, b in wanted)]
        assert found, f"{self.name}: no such version"
        return found


class Conversation(Struct, frozen=True):
    """Steps one after the other; every answer is recorded."""

    name: str
    steps: tuple[Step, ...]
    mask: Mapping[str, str] = {}
    needs_deeds: bool = False
    """Whether brokers go down in it, so that no shared cluster will do."""


def served(api: ApiKey) -> Versions:
    """Inclusive bounds of the versions that 4.3.1 serves."""
    low, high = VERSIONS[api]
    return low, high - APIS[api].is_latest_unstable


def newest(api: ApiKey) -> int:
    """The newest version that 4.3.1 serves."""
    return served(api)[1]
