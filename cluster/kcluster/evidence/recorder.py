"""What happened at the brokers in a run, on either clock: the inside half of the truth.

Owns: what is kept of a run: appends, replicas' moves, registrations (ground.py), every answer that
a client was given, every note.  Never: judges (verdict.py does), changes anything in the cluster,
opens a batch while the cluster runs: all it does then is keep references.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.contract import Note, Reply
from kcluster.evidence.contents import Contents
from kcluster.evidence.history import FinalLog, Ledger
from kcluster.invariants.ground import Ground, PartitionKey
from kcluster.invariants.invariants import Invariants
from kcluster.invariants.watch import Watch
from kcluster.network.node_ids import FIRST_CLIENT_ID
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.batches import Batch
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher

Answer = tuple[int, int, Reply]
"""(at_ms, broker, reply)."""


class PartitionAnswer(Struct, frozen=True, gc=False):
    """What one Produce or Fetch was answered about one partition.  `base_offset` of an append;
    `first` and `last` offset given to a reader, -1 for none."""

    at_ms: int
    broker: int
    reply: Reply
    partition: Partition
    error_code: int
    base_offset: int = -1
    first: int = -1
    last: int = -1
    batches: tuple[Batch, ...] = ()

    @property
    def client(self) -> str:
        return self.reply.request.client_id or ""

    @property
    def asked_ms(self) -> int:
        """When the broker was given the request."""
        return self.reply.request.arrived_ms


class Judged(Struct):
    """What a verdict was made of: everybody's ledger, also that of clients from outside, the logs
    at the end, and what the records of outside clients are known by, by batch."""

    ledger: Ledger
    logs: Mapping[Partition, FinalLog]
    names: Mapping[Batch, list[bytes]]


class Recorder(Watch):
    """Attach it before the cluster starts; at the end give it to `judge`.

    `answers`: every reply that a broker gave, also those that no client got; `notes`: all;
    `grounds`: partitions by (topic id, number).
    """

    def __init__(self, dispatcher: Dispatcher, plan: Plan) -> None:
        self.plan = plan
        self.answers: list[Answer] = []
        self.notes: list[Note] = []
        self.contents = Contents()
        self.judged: Judged | None = None
        """What the last verdict was made of."""
        self.began_ms = dispatcher.now_ms
        super().__init__(dispatcher, Invariants())
        dispatcher.note_sinks = (*dispatcher.note_sinks, self.notes.append)

    @property
    def dispatcher(self) -> Dispatcher:
        """Of the cluster that is recorded."""
        return self._dispatcher

    @property
    def grounds(self) -> dict[PartitionKey, Ground]:
        """What is known of each partition of each topic that ever was."""
        return self.invariants.grounds

    def _on_reply(self, node_id: int, reply: Reply, now_ms: int) -> None:
        super()._on_reply(node_id, reply, now_ms)
        self.answers.append((now_ms, node_id, reply))

    # -------------------------------------------------------------------------- afterwards

    def present(self) -> dict[Partition, Ground]:
        """The partitions of topics that have not been deleted, by name."""
        return {
            (ground.topic, ground.partition): ground
            for ground in self.grounds.values()
            if ground.deleted_ms < 0
        }

    def of_partition(self, partition: Partition) -> list[Ground]:
        """A partition under each topic id that its name had, oldest first."""
        topic, number = partition
        return [
            ground
            for ground in self.grounds.values()
            if ground.topic == topic and ground.partition == number
        ]

    def partition_answers(
        self, api: ApiKey, wanted: Callable[[Answer], bool]
    ) -> Iterator[PartitionAnswer]:
        """What was answered about each partition, by Produce or by Fetch, in order of time."""
        names = {key[0]: ground.topic for key, ground in self.grounds.items()}
        is_fetch = api == ApiKey.FETCH
        for answer in self.answers:
            at_ms, broker, reply = answer
            if reply.request.api_key != api or reply.body is None or not wanted(answer):
                continue
            for topic in reply.body.responses:
                name = names.get(topic.topic_id) or (topic.topic if is_fetch else topic.name)
                for data in topic.partitions if is_fetch else topic.partition_responses:
                    if is_fetch:
                        yield _fetched(at_ms, broker, reply, (name, data.partition_index), data)
                    else:
                        yield PartitionAnswer(
                            at_ms,
                            broker,
                            reply,
                            (name, data.index),
                            data.error_code,
                            data.base_offset,
                        )


def _fetched(
    at_ms: int, broker: int, reply: Reply, partition: Partition, data: Any
) -> PartitionAnswer:
    batches = data.records
    if not batches or isinstance(batches, bytes | bytearray | memoryview):
        return PartitionAnswer(at_ms, broker, reply, partition, data.error_code)
    return PartitionAnswer(
        at_ms,
        broker,
        reply,
        partition,
        data.error_code,
        -1,
        batches[0].base_offset,
        batches[-1].last_offset,
        tuple(batches),
    )


def keeps_a_ledger(client_id: str | None) -> bool:
    """Whether a Kafka client id is one that a wire of ours gives: its client writes its own
    ledger."""
    if client_id is None or not client_id.startswith("client-"):
        return False
    number = client_id.removeprefix("client-")
    return number.isdigit() and int(number) >= FIRST_CLIENT_ID
