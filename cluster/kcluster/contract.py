"""The contract of nodes and drivers: a node's inputs, its effects, and the guarantees of a driver.

Owns: the types of inputs and effects, the base of all events, the `Node` protocol.  Never: imports
anything of ours but ids and principals; every layer may import this.
Kafka: RequestChannel.Request/Response, and raft's Ready/Step contract.

A *node* (a broker or the controller) is a state machine: `step(now_ms, incoming) -> effects`.  It
does no I/O, reads no clock, draws no global randomness, never waits.  A *driver* (drivers/live.py,
drivers/virtual_time.py) owns time, sockets and delivery.

What every driver guarantees
  1. At most one step runs at a time in a cluster; a step is never interrupted.
  2. The effects of a step are carried out in list order.
  3. Messages from one node to another arrive in the order sent, whatever the delays, or not at all.
     A rule between nodes may hold up messages of one kind, which others then overtake.
  4. Messages over a link without delay are delivered within the same dispatch, breadth first: all
     nodes are idle again before the driver reads the next bytes from a client. During a long
     dispatch the live driver reads in between, but time stands still until it ends.
  5. `now_ms` never goes back, and is equal for every step of one dispatch.
  6. Of one connection at most one Request is in a node; the next is delivered after its Reply.
     A node owes exactly one Reply to each Request, in this step or a later one, but none once its
     connection has closed.
  7. A node whose `deadline_ms` is set gets a Tick at that time or later.
  8. When a process dies, every node that it could talk to gets a PeerDisconnected; so does a node
     that sends to a process that is down (connection refused).  A cut link, or a paused process,
     is silence: nothing arrives, and no node is notified.  When a link is healed, both ends get
     a PeerDisconnected, because the messages under way over it are lost.
What no driver guarantees
  - that a PeerRequest gets its PeerResponse (links are cut): its sender needs its own timeout;
  - that a Tick is on time;
  - any order between messages of different senders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, final

from msgspec import Struct
from mypy_extensions import mypyc_attr

from kcluster.node_ids import CONTROLLER_ID as CONTROLLER_ID
from kcluster.principals import UNAUTHENTICATED, ClientIdentity
from kcluster.structs import Untracked

SASL_AUTHENTICATE: Final = 36
"""The key of the API whose requests carry passwords and tokens: they are never shown."""

NoteId = tuple[int, int]
"""(node id, that node's running number): identifies a Note, so that another Note can name it as its
cause."""


# ------------------------------------------------------------------------------------- inputs


@mypyc_attr(free_list_len=1)
@final
class Request:
    """One request of a client, decoded.

    This class and the four most frequent inputs and effects are not msgspec.Structs: compiled
    code creates and reads native classes four times as fast (docs/decisions/003).

    `body`: the message, `kcluster.protocol.messages.<Api>Request`.  `identity`: the client, as its
    listener authenticated it.
    """

    __slots__ = (
        "api_key",
        "api_version",
        "arrived_ms",
        "body",
        "client_host",
        "client_id",
        "connection_id",
        "correlation_id",
        "identity",
    )  # fmt: skip

    def __init__(
        self,
        connection_id: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        body: Any,
        client_host: str = "127.0.0.1",
        arrived_ms: int = 0,
        identity: ClientIdentity = UNAUTHENTICATED,
    ) -> None:
        self.connection_id = connection_id
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body = body
        self.client_host = client_host
        self.arrived_ms = arrived_ms
        self.identity = identity

    def __repr__(self) -> str:
        body = "(a secret)" if self.api_key == SASL_AUTHENTICATE else repr(self.body)
        return (
            f"<Request {self.correlation_id} of connection {self.connection_id}, API {self.api_key}"
            f" v{self.api_version}: {body}>"
        )


class _PeerMessage:
    """The base of messages between nodes."""

    __slots__ = ("body", "request_id", "source")

    def __init__(self, source: int, request_id: int, body: Any) -> None:
        self.source = source
        self.request_id = request_id
        self.body = body

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source}, {self.request_id}, {self.body!r})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _PeerMessage)
            and type(other) is type(self)
            and (other.source, other.request_id, other.body)
            == (self.source, self.request_id, self.body)
        )


@mypyc_attr(free_list_len=1)
@final
class PeerRequest(_PeerMessage):
    """A request from another node of the cluster, over the fabric.

    `request_id`: chosen by the sender, and repeated in the response.  `body`: a protocol message
    (FetchRequest, AlterPartitionRequest, …) or `MetadataFetch`.
    """

    __slots__ = ()


@mypyc_attr(free_list_len=1)
@final
class PeerResponse(_PeerMessage):
    """The answer to a PeerRequest."""

    __slots__ = ()


class PeerDisconnected(Untracked):
    """The process of `peer` is gone: its connections were reset, or refused."""

    peer: int


class ConnectionClosed(Untracked):
    """A client disconnected; its parked requests get no reply."""

    connection_id: int


class LoginFailed(Struct):
    """A client of a SASL listener sent something that ends its login.  The node closes the
    connection.

    `problem`: why, a LoginProblem of kcluster.security; `user`: the user that the client named;
    `detail`: more about the problem, without secrets; `is_delayed`: whether the connection closes
    only after a delay.  `request`, `answer`: what is answered before; None if nothing is.
    """

    connection_id: int
    client_host: str
    problem: str
    user: str = ""
    detail: str = ""
    is_delayed: bool = False
    request: Request | None = None
    answer: Any = None


class HandshakeFailed(Untracked):
    """The TLS handshake of a client's connection failed, and the connection is closed.

    `problem`: why, a HandshakeProblem of kcluster.security; `detail`: more about it.
    """

    listener: str
    client_host: str
    problem: str
    detail: str = ""


class Tick(Untracked):
    """The input that `deadline_ms` has come."""


class Start(Untracked):
    """The first input of a node's life; every life has exactly one."""


class Shutdown(Untracked):
    """Stop cleanly: controlled shutdown, then the effect Stopped.  Kafka: SIGTERM."""


class EndSessions(Untracked):
    """End the sessions of a broker's clients now: the next request of each that does not log in
    again closes its connection (KIP-368).  `user`: null for all; `mechanism`: empty for all."""

    user: str | None = None
    mechanism: str = ""


class MoveLeader(Untracked):
    """A request to the controller: make `leader` the leader of a partition, if it is in the ISR."""

    topic: str
    partition: int
    leader: int


Input = (
    Request
    | PeerRequest
    | PeerResponse
    | PeerDisconnected
    | ConnectionClosed
    | LoginFailed
    | HandshakeFailed
    | Tick
    | Start
    | Shutdown
    | EndSessions
    | MoveLeader
)


# ------------------------------------------------------------------------------------ effects


@mypyc_attr(free_list_len=1)
@final
class Reply:
    """The answer to a Request.  `body`: None if nothing is sent (Produce with acks=0); the
    connection's next request may then come.

    `close_reason`: why the connection is closed after the answer; empty: it stays open.
    `is_of_rule`: whether a fault rule has answered, or has changed the broker's answer.
    """

    __slots__ = ("body", "close_reason", "is_of_rule", "request")

    def __init__(
        self, request: Request, body: Any, close_reason: str = "", is_of_rule: bool = False
    ) -> None:
        self.request = request
        self.body = body
        self.close_reason = close_reason
        self.is_of_rule = is_of_rule


@mypyc_attr(free_list_len=1)
@final
class Send:
    """Give `message` to node `to`, over the fabric."""

    __slots__ = ("message", "to")

    def __init__(self, to: int, message: PeerRequest | PeerResponse) -> None:
        self.to = to
        self.message = message


class CloseConnection(Untracked):
    """Close a client's connection; `reason` is logged in one line."""

    connection_id: int
    reason: str


class Event(Protocol):
    """An event, as typed facts.  `kcluster.events` has a type for each kind.

    Its text is made from these fields in one place, cluster/kcluster/events/words/.
    """

    @property
    def kind(self) -> str:
        """The word for the event's kind: `leader_elected`."""

    @property
    def subject(self) -> str:
        """The name of the event's subject, as people type it: `orders-0`, `broker 2`."""

    @property
    def is_internal(self) -> bool:
        """Whether the event concerns one of Kafka's internal topics."""


class Note(Untracked):
    """An event with its time and its cause.  Tests, timeline, CLI and verdicts read these."""

    note_id: NoteId
    at_ms: int
    event: Event
    cause: NoteId | None = None


class AcceptClients(Untracked):
    """Open the broker's ports for clients, once in its life: it has caught up with the metadata,
    and was unfenced.  Kafka: SocketServer.enableRequestProcessing."""


class Stopped(Untracked):
    """The node has shut down cleanly; the driver takes it down."""


Effect = Reply | Send | CloseConnection | Note | AcceptClients | Stopped


class Node(Protocol):
    """A broker or the controller, for a driver."""

    node_id: int

    @property
    def deadline_ms(self) -> int | None:
        """The earliest time at which this node wants a Tick; None for never."""

    def step(self, now_ms: int, incoming: Input) -> Sequence[Effect]:
        """Take one input; return its effects, in order."""


class Rng(Protocol):
    """The part of random.Random that nodes use.  The driver seeds it."""

    def random(self) -> float: ...
    def randrange(self, stop: int, /) -> int: ...
    def randbytes(self, n: int, /) -> bytes: ...
