"""The demo's observations: the cluster's notes, and the brokers' answers about one partition.

Owns: collecting both, finding the moments of a failover in them.  Never: causes any of them.
Kafka: no counterpart.  All times are on the cluster's clock, in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from msgspec import Struct

from kcluster.contract import Event, Note, Reply, Request
from kcluster.events.partitions import LeaderElected, PartitionEvent
from kcluster.events.render import api_name
from kcluster.events.timeline import Moment
from kcluster.events.words import sentence_of
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

E = TypeVar("E", bound=Event)

ANSWERS_MAX: Final = 200_000


class ObservedAnswer(Struct, gc=False):
    """A broker's answer to a client about the observed partition.

    `error_code`: the partition's, in Produce and Fetch.  `leader`: the leader that a Metadata
    answer names, else -1.
    """

    at_ms: int
    broker_id: int
    api_key: int
    client_id: str
    error_code: int
    leader: int


class FailoverWatch:
    """Collects notes, and also answers once it is armed; its callbacks run in the cluster's
    thread."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.partition: int | None = None
        """The observed partition; None until the story has chosen it."""
        self.notes: list[Note] = []
        self.answers: list[ObservedAnswer] = []
        self._topic_ids: set[bytes] = set()

    def arm(self, partition: int) -> None:
        self.partition = partition

    def on_note(self, note: Note) -> None:
        self.notes.append(note)

    def on_reply(self, broker_id: int, reply: Reply, now_ms: int) -> None:
        request, body = reply.request, reply.body
        if body is None:
            return
        api_key = request.api_key
        if api_key == ApiKey.METADATA:
            self._on_metadata(broker_id, reply, now_ms)
        elif api_key in (ApiKey.PRODUCE, ApiKey.FETCH) and self.partition is not None:
            for topic in body.responses:
                name = getattr(topic, "name", "") or getattr(topic, "topic", "")
                if name != self.topic and topic.topic_id not in self._topic_ids:
                    continue
                partitions = (
                    topic.partition_responses if api_key == ApiKey.PRODUCE else topic.partitions
                )
                for partition in partitions:
                    index = getattr(partition, "index", getattr(partition, "partition_index", -1))
                    if index == self.partition:
                        self._add(now_ms, broker_id, request, partition.error_code, -1)

    def _on_metadata(self, broker_id: int, reply: Reply, now_ms: int) -> None:
        for topic in reply.body.topics:
            if topic.name != self.topic:
                continue
            if any(topic.topic_id):
                self._topic_ids.add(topic.topic_id)
            for partition in topic.partitions:
                if partition.partition_index == self.partition:
                    self._add(now_ms, broker_id, reply.request, 0, partition.leader_id)

    def _add(
        self, at_ms: int, broker_id: int, request: Request, error_code: int, leader: int
    ) -> None:
        if len(self.answers) < ANSWERS_MAX:
            self.answers.append(
                ObservedAnswer(
                    at_ms=at_ms,
                    broker_id=broker_id,
                    api_key=request.api_key,
                    client_id=request.client_id or "-",
                    error_code=error_code,
                    leader=leader,
                )
            )

    # ---------------------------------------------------------------------------------- finding

    def first_event(
        self, wanted: type[E], accepts: Callable[[E], bool], since: int = 0
    ) -> tuple[int, E] | None:
        """The first event of a type that `accepts` accepts, from the note with index `since` on,
        and its time in ms."""
        for note in self.notes[since:]:
            event = note.event
            if isinstance(event, wanted) and accepts(event):
                return note.at_ms, event
        return None

    def first_answer(
        self, accepts: Callable[[ObservedAnswer], bool], since: int = 0
    ) -> ObservedAnswer | None:
        return next((answer for answer in self.answers[since:] if accepts(answer)), None)

    def is_about_partition(self, event: PartitionEvent) -> bool:
        return event.topic == self.topic and event.partition == self.partition


def is_refusal(answer: ObservedAnswer) -> bool:
    return answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def is_ack_of(broker_id: int) -> Callable[[ObservedAnswer], bool]:
    """Accepts a successful Produce answer of this broker."""
    return lambda answer: (
        answer.api_key == ApiKey.PRODUCE
        and answer.broker_id == broker_id
        and answer.error_code == ErrorCode.NONE
    )


def is_refresh_to(broker_id: int, client_id: str) -> Callable[[ObservedAnswer], bool]:
    """Accepts a Metadata answer to `client_id` that names this broker as the leader."""
    return lambda answer: answer.leader == broker_id and answer.client_id.startswith(client_id)


def took_over(
    watch: FailoverWatch, leader: int, clients: tuple[str, ...], note_since: int, answer_since: int
) -> list[Moment]:
    """The observed moments of one change of leader: elected, refused, refreshed, first ack.  Notes
    and answers count from these indexes on."""
    moments = []
    name = f"{watch.topic}-{watch.partition}"
    elected = watch.first_event(
        LeaderElected,
        lambda event: watch.is_about_partition(event) and event.new_leader == leader,
        note_since,
    )
    if elected is not None:
        moments.append(Moment(elected[0], "elected", sentence_of(elected[1])))
    refusal = watch.first_answer(is_refusal, answer_since)
    if refusal is not None:
        moments.append(
            Moment(
                refusal.at_ms,
                "refused",
                f"NOT_LEADER_OR_FOLLOWER: broker {refusal.broker_id} to {refusal.client_id}'s "
                f"{api_name(refusal.api_key)} of {name}",
            )
        )
    for client_id in clients:
        refresh = watch.first_answer(is_refresh_to(leader, client_id), answer_since)
        if refresh is not None:
            moments.append(
                Moment(
                    refresh.at_ms,
                    "refreshed",
                    f"{client_id} learns from broker {refresh.broker_id} that {leader} leads",
                )
            )
    ack = watch.first_answer(is_ack_of(leader), answer_since)
    if ack is not None:
        moments.append(
            Moment(ack.at_ms, "acked", f"first lines of {name} acked by broker {leader}")
        )
    return moments
