"""Cases and conversations as data.  A case is run once for each version of its API.

Owns: Case, Conversation and their steps.  Never: sends (running.py does).

Values in bodies may be placeholders, strings in braces; filling.py lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from kcluster.conform.references import NEWEST, Reference
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.codec.schema import parse_versions
from kcluster.security.sasl.mechanisms import OAUTHBEARER

Body = Mapping[str, object]
"""Field values by name; structs are mappings, arrays are lists.  Missing fields have their default;
fields that a version does not have are left out."""

CaseBody = Body | Callable[[int], Body]
"""A body, or a function from the version to a body."""

COORDINATOR = "coordinator"
"""As `to`: the coordinator of {group}."""
NOT_COORDINATOR = "not the coordinator"
CONTROLLER_ANY = 1
"""As `to`: the broker that gets requests which the controller decides."""


class Ask(Struct, frozen=True):
    """Send one request.  In a conversation its response is recorded; before a case its response
    must have no error."""

    api: ApiKey
    body: Body = {}
    version: int = -1
    """-1: the newest."""
    to: int | str = 1
    on: str = ""
    """The name of the connection; every broker has one connection per name."""
    save: Mapping[str, str] = {}
    """Placeholder -> its value's path in the response: `responses[0].member_id`."""
    later: bool = False
    """Do not wait for the response; an `Await` does."""
    retry: tuple[str, ...] = ()
    """Errors anywhere in the response after which the request is retried for a while."""
    until: str = ""
    """A text in the plain response; the request is repeated until it appears."""
    client_id: str | None = "compare"
    note: str = ""
    """What happens in this step, for readers of the recorded responses."""
    only_waits: bool = False
    """In a conversation: it waits for something, and its response is not recorded."""
    may_fail: bool = False
    """Before a case: an error in the response is expected."""


class Await(Struct, frozen=True):
    """Wait for the pending response of a connection."""

    to: int | str
    on: str = ""
    save: Mapping[str, str] = {}
    note: str = ""


class Sleep(Struct, frozen=True):
    """Let time pass."""

    duration_ms: int


class Operate(Struct, frozen=True):
    """An operation on a broker: `kill`, `stop` (a clean shutdown) or `start`."""

    verb: str
    broker: int | str
    """As `to` of an Ask."""


class Disconnect(Struct, frozen=True):
    """Close a connection."""

    to: int | str
    on: str = ""


class Connect(Struct, frozen=True):
    """Open a connection to the listener with logins, without logging in."""

    to: int | str
    on: str


class SendBytes(Struct, frozen=True):
    """Send a frame that is not a request; the frame that comes back is recorded."""

    data: bytes
    to: int | str
    on: str
    note: str = ""


class LogIn(Struct, frozen=True):
    """Log in by SASL; the answers are recorded."""

    user: str
    on: str
    mechanism: str = OAUTHBEARER
    password: object = ""
    """A text; for a delegation token, its HMAC."""
    to: int | str = 1
    version: int = 2
    """The version of SaslAuthenticate."""
    by_token: bool = False
    """Whether `user` is the id of a delegation token."""
    is_new: bool = True
    """Whether the connection is new; False: log in again on the open one."""
    note: str = ""


def passed_on(fields: Mapping[str, object]) -> JsonObject:
    """Fields of a step or of a case that a function passes on without knowing them."""
    return dict(fields)


Step = Ask | Await | Sleep | Operate | Disconnect | Connect | SendBytes | LogIn


class Case(Struct, frozen=True):
    """One request in all its versions, with the steps before and after it."""

    name: str
    api: ApiKey
    body: CaseBody = {}
    """A body, or a function from the version to a body."""
    versions: str = ""
    """`4-12`, `3+`, `7`, `3,9,13+`, `newest`; empty: all versions that the release serves."""
    to: int | str = 1
    before: tuple[Step, ...] = ()
    after: tuple[Step, ...] = ()
    """Recorded after the case, in addition to the state that probes.py records."""
    mask: Mapping[str, str] = {}
    """Fields (by name, anywhere in the response) that cannot be compared -> the reason."""
    bend: Callable[[bytes], bytes] | None = None
    """Changes the encoded request (without its length), for bytes that no codec writes."""
    answered: bool = True
    """False: no response is expected (acks=0), so the wait is short."""
    client_id: str | None = "compare"
    rights: tuple[Mapping[str, object], ...] | None = None
    """In a secured cluster: it is asked by {user}, who has these rights (rights.py)."""
    by_each_role: bool = False
    """In a secured cluster: it is asked by each role of rights.py, and the outcome has each
    different answer once."""

    def each_version(self, reference: Reference) -> list[int]:
        """The versions to run against a release, none if it is too old for the case."""
        low, high = reference.served(self.api)
        text = str(high) if self.versions == "newest" else self.versions
        wanted = [parse_versions(one) for one in text.split(",") if one] or [(low, high)]
        found = [v for v in range(low, high + 1) if any(a <= v <= b for a, b in wanted)]
        assert found or reference != NEWEST, f"{self.name}: no such version"
        return found


class Conversation(Struct, frozen=True):
    """A sequence of steps; every response is recorded."""

    name: str
    steps: tuple[Step, ...]
    mask: Mapping[str, str] = {}
    is_secured: bool = False
    """Whether it is for the cluster with logins and an authorizer."""
    needs_operations: bool = False
    """Whether brokers are stopped, which needs a cluster of its own."""
