"""The stored form of the record: rows of clients, groups and transactions.

Owns: these row types and their columns.  Never: fills them (exchanges.py, coordinator_states.py),
writes them (runs/).
Kafka: no counterpart.

`runs/record.py` has their files.  Times are in ms of the cluster's clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kcluster.clients.ledger import Partition


class SendAnomaly(Struct, frozen=True, gc=False):
    """An anomaly of the verdict that concerns a record that was sent: lost-write, duplicate,
    nonmonotonic-send or aborted-read.

    `cause`: the election, the fault rule, or the error that a client got; `allowed`: the setting
    that allows it, "" for none; `records`: the copies beyond the first, or the reads of a hidden
    record, else 1; `reader`: the consumer that read a lost record."""

    name: str
    cause: str
    allowed: str
    records: int = 1
    reader: str = ""


SendAnomalies = Mapping[tuple[Partition, bytes | None], Sequence[SendAnomaly]]
"""The anomalies of sends by their partition and value."""


class WaitingRow(Struct, gc=False):
    """The records of a producer that have no outcome, at a time.  `partition`: -1 while send()
    blocks before it has chosen one; `oldest_ms`: the time at which the oldest of them was sent."""

    at_ms: int
    client: str
    topic: str
    partition: int
    count: int
    oldest_ms: int


class ExchangeRow(Struct, gc=False):
    """`exchanges.jsonl`: a request of a client, and the broker's answer.

    `at_ms`: its end, by the answer, or by the end of its connection or broker. `answered_ms`: -1
    without an answer (a Produce with acks=0 gets none).  `topic`, `partition`: the first partition
    in it, preferably one with an error; `partitions`: their number.  `error`: Kafka's name, "" for
    none.  `first`, `last`: the offsets that were appended, read or acquired, -1 for none.
    `leader`, `leader_epoch`: the leader of that partition in the answer (Metadata, KIP-951), or -1.
    `acks`: of a Produce, -1 for all and for other APIs.
    """

    at_ms: int
    client: str
    broker: int
    api: str
    asked_ms: int
    answered_ms: int
    topic: str | None = None
    partition: int | None = None
    partitions: int = 0
    error: str = ""
    first: int = -1
    last: int = -1
    leader: int = -1
    leader_epoch: int = -1
    acks: int = -1


class BeliefRow(Struct, gc=False):
    """`beliefs.jsonl`: the leader of a partition in a client's newest answer.  `leader`: -1 if
    there is none; `leader_epoch` -1: the answer did not name it."""

    client: str
    topic: str
    partition: int
    leader: int
    leader_epoch: int
    at_ms: int


class GroupMemberValue(Struct, frozen=True, gc=False):
    """A member of a group.  `assignment`: (topic, partition); in a streams group (subtopology,
    partition) of the member's active tasks."""

    id: str
    client: str
    assignment: tuple[tuple[str, int], ...]


class GroupRow(Struct, gc=False):
    """`groups.jsonl`: a group at its coordinator, after a change.  `kind`: classic, consumer,
    share, streams; `state`: Kafka's name, Dead for a deleted group; `epoch`: its generation or
    group epoch."""

    group: str
    kind: str
    state: str
    epoch: int
    coordinator: int
    members: tuple[GroupMemberValue, ...]
    at_ms: int


class LoginRow(Struct, gc=False):
    """`logins.jsonl`: the connections of a client to a broker as one principal, after a change.

    `mechanism`: empty without SASL; `client_id`: the client's client.id; `connections`: 0
    once it has none; `ends_ms`: the time by which it must have logged in again on the first of
    them, -1: never.  `problem`: why its newest login was refused there, "" if it was let in.
    """

    client: str
    client_id: str
    broker: int
    listener: str
    mechanism: str
    principal: str
    connections: int
    ends_ms: int
    problem: str
    at_ms: int


class CredentialRow(Struct, gc=False):
    """`credentials.jsonl`: a certificate that a broker or a client shows, or a delegation token,
    after a change.

    `kind`: certificate or delegation token; `owner`: `broker 2`, or the principal; `name`: the
    listener, or the token's id.  `state`: valid, expired, wrong-name, or gone; `until_ms`: its end,
    in ms since 1970, -1: unknown.
    """

    kind: str
    owner: str
    name: str
    state: str
    until_ms: int
    at_ms: int


class TransactionStateRow(Struct, gc=False):
    """`transaction_states.jsonl`: a transactional id at its coordinator, after a change. `state`:
    Kafka's name, Dead for a deleted id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: str
    partitions: tuple[tuple[str, int], ...]
    coordinator: int
    at_ms: int
