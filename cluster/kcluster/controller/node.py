"""The controller as one node: inputs in, effects out; all metadata changes pass through here.

Owns: the metadata log and its image, who waits for more of it, the table of handlers.  Never:
decides (the modules it imports do); does I/O, reads a clock, draws randomness but from its rng.
Kafka: QuorumController (without a quorum: one controller, never down), ControllerApis.

What a step gives back, in this order: notes as they were made, then to every broker that waits for
metadata the new records, then the answers.  So the broker that asked for a change over a link
without delay has seen it when it gets the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.config.topology.model import TopicSpec
from kcluster.contract import (
    CONTROLLER_ID,
    Effect,
    Event,
    Input,
    MoveLeader,
    Note,
    NoteId,
    PeerDisconnected,
    PeerRequest,
    PeerResponse,
    Rng,
    Send,
    Start,
    Tick,
)
from kcluster.controller import (  # noqa: F401  importing a handler registers it
    alter_configs,
    alter_partition,
    bootstrap,
    brokers,
    client_quotas,
    create_partitions,
    elect_leaders,
    features,
    quorum,
    reassignments,
    scram,
    topics,
)
from kcluster.controller.liveness import Sessions
from kcluster.controller.metadata_log import MetadataLog
from kcluster.controller.mutation_quotas import MutationQuotas
from kcluster.controller.partition_index import PartitionIndex, PartitionKey
from kcluster.controller.registry import HANDLERS
from kcluster.controller.topic_names import TopicNames
from kcluster.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    ConfigRecord,
    Envelope,
    MetadataFetch,
    MetadataFetchResponse,
    MetadataImage,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kcluster.protocol.features import ELR_VERSION
from kcluster.timers import NEVER_MS, Timers

_MIN_ISR: Final = "min.insync.replicas"


class _Waiting(Struct, gc=False):
    """A broker's MetadataFetch that found nothing new."""

    request_id: int
    offset: int


class ControllerNode:
    """See the module's head.  `config`: the brokers' common static config."""

    def __init__(
        self,
        config: BrokerConfig,
        rng: Rng,
        cluster_id: str,
        bootstrap_topics: Sequence[TopicSpec],
        expected_brokers: tuple[int, ...],
        log: MetadataLog | None = None,
    ) -> None:
        self.node_id = CONTROLLER_ID
        self.log = MetadataLog() if log is None else log
        self.config = config
        self.rng = rng
        self.cluster_id = cluster_id
        self.timers = Timers()
        self.image = MetadataImage()
        self.index = PartitionIndex()
        self.sessions = Sessions(config.broker_session_timeout_ms)
        self.topic_names = TopicNames()
        if self.log.bootstrap is None:
            self.log.bootstrap = bootstrap.Bootstrap(tuple(bootstrap_topics), expected_brokers)
        self.bootstrap = self.log.bootstrap
        self.cluster_config = config
        """`config` with the cluster-wide dynamic configs applied."""
        self.reassignments: dict[PartitionKey, NoteId] = {}
        """The note of the start of each reassignment under way."""
        self.observers: dict[int, quorum.Observer] = {}
        """By broker id: who has fetched the metadata log."""
        self.mutations = MutationQuotas(self)
        self._log: list[MetadataRecord] = self.log.records
        self._waiting: dict[int, _Waiting] = {}
        self._effects: list[Effect] = []
        self._answers: list[Effect] = []
        self._now_ms = 0

    # ------------------------------------------------------------------------------ as a Node

    @property
    def deadline_ms(self) -> int | None:
        next_ms = self.timers.next_ms
        return next_ms if next_ms < NEVER_MS else None

    def step(self, now_ms: int, incoming: Input) -> Sequence[Effect]:
        """Take one input; return what is to be done, in order."""
        self._now_ms = now_ms
        match incoming:
            case PeerRequest(body=MetadataFetch() as fetch):
                self._fetch_metadata(incoming, fetch, now_ms)
            case PeerRequest():
                self._answer(incoming, now_ms)
            case Tick():
                self.timers.run_due(now_ms)
            case Start():
                self._start(now_ms)
            case MoveLeader():
                elect_leaders.move(self, incoming)
            case PeerDisconnected(peer=peer):
                # Its process is gone, so nobody reads the answer.  The session decides the rest.
                self._stop_waiting(peer)
            case _:
                # PeerResponse: the controller asks nothing.  Request, Shutdown: it has no clients
                # and is never shut down.
                pass
        if self._waiting:
            self._send_news()
        self._effects += self._answers
        effects, self._effects, self._answers = self._effects, [], []
        return effects

    def _start(self, now_ms: int) -> None:
        self.log.epoch += 1
        if self._log:
            for record in self._log:
                self._apply(record)
            brokers.take_over(self, now_ms)
        else:
            self.commit(features.initial_records(self))
        bootstrap.start(self, now_ms)
        elect_leaders.start(self, now_ms)

    def _answer(self, request: PeerRequest, now_ms: int) -> None:
        asked = request.body
        if isinstance(asked, Envelope):
            self.mutations.begin(asked, now_ms)
            asked = asked.body
        handler = HANDLERS.get(type(asked).__name__)
        if handler is None:
            return  # not a message to a controller; the asker's own timeout tells it
        body = handler(self, asked, now_ms)
        if asked is not request.body:
            self.mutations.end(body)
        self._answers.append(
            Send(request.source, PeerResponse(self.node_id, request.request_id, body))
        )

    # -------------------------------------------------------------------- the metadata log

    def commit(self, records: Sequence[MetadataRecord]) -> None:
        """Append and apply.  The only way in which the cluster's metadata changes."""
        for record in records:
            self._log.append(record)
            self._apply(record)

    def _apply(self, record: MetadataRecord) -> None:
        match record:
            case PartitionRecord(registration=new):
                partitions = self.image.topics[self.image.topic_names[new.topic_id]].partitions
                known = new.partition < len(partitions)
                self.index.update(partitions[new.partition] if known else None, new)
                self.image.apply(record)
            case TopicRecord(name=name):
                self.topic_names.add(name)
                self.image.apply(record)
            case RemoveTopicRecord(topic_id=topic_id):
                removed = self.image.topic_by_id(topic_id)
                assert removed is not None, record
                self.topic_names.remove(removed.name)
                for partition in removed.partitions:
                    self.index.update(partition, None)
                    self.reassignments.pop((topic_id, partition.partition), None)
                self.image.apply(record)
            case ConfigRecord(resource_type=kind, resource_name=name):
                self.image.apply(record)
                if (kind, name) == (BROKER_RESOURCE, CLUSTER_DEFAULT):
                    self.cluster_config = self._with_dynamic_defaults()
            case _:
                self.image.apply(record)

    @property
    def end_offset(self) -> int:
        """Offset that the next record will get."""
        return len(self._log)

    def _with_dynamic_defaults(self) -> BrokerConfig:
        dynamic = self.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
        return self.config.override(dynamic)

    def _fetch_metadata(self, request: PeerRequest, fetch: MetadataFetch, now_ms: int) -> None:
        """A broker that asks from `offset` on has everything before it."""
        quorum.record_fetch(self, request.source, fetch.offset, now_ms)
        session = self.sessions.get(request.source)
        if session is not None:
            session.metadata_offset = max(session.metadata_offset, fetch.offset - 1)
        self._stop_waiting(request.source)
        self._waiting[request.source] = _Waiting(request.request_id, fetch.offset)
        if fetch.offset >= len(self._log):
            self.timers.set(
                ("metadata fetch", request.source),
                now_ms + fetch.max_wait_ms,
                self._nothing_new(request.source),
            )

    def _nothing_new(self, broker_id: int) -> Callable[[int], None]:
        def expire(_now_ms: int) -> None:
            waiting = self._waiting.pop(broker_id)
            self._send_records(broker_id, waiting)

        return expire

    def _send_news(self) -> None:
        end = len(self._log)
        for broker_id, waiting in list(self._waiting.items()):
            if waiting.offset < end:
                self._stop_waiting(broker_id)
                self._send_records(broker_id, waiting)

    def _send_records(self, broker_id: int, waiting: _Waiting) -> None:
        body = MetadataFetchResponse(waiting.offset, self._log[waiting.offset :])
        self._effects.append(Send(broker_id, PeerResponse(self.node_id, waiting.request_id, body)))

    def _stop_waiting(self, broker_id: int) -> None:
        if self._waiting.pop(broker_id, None) is not None:
            self.timers.cancel(("metadata fetch", broker_id))

    # ------------------------------------------------------------------- for the handlers

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Note what was decided; the id can be given as the cause of what follows."""
        self.log.note_count += 1
        note_id = (self.node_id, self.log.note_count)
        self._effects.append(Note(note_id, self._now_ms, event, cause))
        return note_id

    def is_active(self, broker_id: int) -> bool:
        """Registered, unfenced and not in controlled shutdown: may lead and be in an ISR."""
        registration = self.image.brokers.get(broker_id)
        return registration is not None and registration.is_active

    @property
    def elr_enabled(self) -> bool:
        """Whether ELRs are kept: eligible.leader.replicas.version is 1 (KIP-966)."""
        return ELR_VERSION in self.image.features

    def min_isr(self, topic: str) -> int:
        """The topic's effective min.insync.replicas: never more than its first partition has
        replicas.  Kafka: ReplicationControlManager.getTopicEffectiveMinIsr."""
        own = self.image.topic_configs(topic).get(_MIN_ISR)
        wanted = self.cluster_config.min_insync_replicas if own is None else int(own)
        return min(wanted, len(self.image.topics[topic].partitions[0].replicas))

    def unclean_allowed(self, topic: str) -> bool:
        """The topic's effective unclean.leader.election.enable."""
        own = self.image.topic_configs(topic).get("unclean.leader.election.enable")
        if own is None:
            return self.cluster_config.unclean_leader_election_enable
        return own.strip().lower() == "true"
