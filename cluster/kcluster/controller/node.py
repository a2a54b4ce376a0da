"""The controller as one node: inputs in, effects out; all metadata changes pass through here.

Owns: the metadata log's image, the brokers that wait for new records, the controller's parts.
Never: decides (its parts do); does I/O, reads a clock, draws randomness except from its rng. Kafka:
QuorumController, ControllerApis.  One node is active at a time: when its process dies, the next one
takes over the metadata log, which outlives it (metadata_log.py, docs/decisions/005).

A step returns its notes, then the new records for every broker that waits for metadata, then the
answers.  So a broker that requested a change over a link without delay has applied the change when
it gets the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.config.topology.specs import TopicSpec, UserSpec
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
from kcluster.controller.bootstrap import Bootstrap
from kcluster.controller.configs.alter_configs import Configs
from kcluster.controller.configs.client_quotas import ClientQuotaControl
from kcluster.controller.configs.features import Features
from kcluster.controller.configs.scram import ScramCredentials
from kcluster.controller.membership.liveness import Sessions
from kcluster.controller.membership.membership import Membership
from kcluster.controller.membership.producer_ids import ProducerIdBlocks
from kcluster.controller.metadata_log import MetadataLog
from kcluster.controller.partitions.alter_partition import IsrProposals
from kcluster.controller.partitions.elect_leaders import LeaderElections
from kcluster.controller.partitions.partitions import Partitions
from kcluster.controller.partitions.reassignments import Reassignments
from kcluster.controller.quorum import Quorum
from kcluster.controller.registry import Handler, Part, handlers_of
from kcluster.controller.security.acls import AclControl
from kcluster.controller.security.authorization import ControllerAuthorization
from kcluster.controller.security.delegation_tokens import DelegationTokens
from kcluster.controller.topics.create_partitions import PartitionAdditions
from kcluster.controller.topics.mutation_quotas import MutationQuotas
from kcluster.controller.topics.topics import Topics
from kcluster.metadata.delta import MetadataDelta, MetadataFetchResponse
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    AccessControlEntryRecord,
    ConfigRecord,
    Envelope,
    MetadataFetch,
    MetadataRecord,
    PartitionRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from kcluster.protocol.releases import Release, latest
from kcluster.security.acls import Acl
from kcluster.security.authorizer import authorizer_of
from kcluster.security.tokens import TokenSettings
from kcluster.structs import Untracked
from kcluster.timers import NEVER_MS, Timers

DELTAS_KEPT: Final = 8
"""The number of deltas that are kept: brokers are mostly at one offset, or at two."""


class _WaitingFetch(Untracked):
    """A broker's MetadataFetch that waits, because there was nothing new."""

    request_id: int
    offset: int


class ControllerNode:
    """One life of the controller.  `config`: the brokers' common static config; `release`: the
    controller's own release; `users`: those with SCRAM credentials in a new cluster, with their
    mechanisms.

    It is the MetadataPort of its parts (ports.py).
    """

    def __init__(
        self,
        config: BrokerConfig,
        rng: Rng,
        cluster_id: str,
        bootstrap_topics: Sequence[TopicSpec],
        expected_brokers: tuple[int, ...],
        log: MetadataLog | None = None,
        features: Mapping[str, int] = {},
        release: Release | None = None,
        users: Sequence[tuple[UserSpec, str]] = (),
        acls: Sequence[Acl] = (),
        tokens: TokenSettings | None = None,
    ) -> None:
        self.node_id = CONTROLLER_ID
        self.log = MetadataLog() if log is None else log
        self.config = config
        self.rng = rng
        self.cluster_id = cluster_id
        self.release = release or latest()
        self.timers = Timers()
        self.image = MetadataImage()
        self.cluster_config = config
        """`config` with the cluster-wide dynamic configs applied."""
        self._log: list[MetadataRecord] = self.log.records
        self._waiting: dict[int, _WaitingFetch] = {}
        self._news_end = 0
        """The end of the log when records were last sent: waiting brokers have all earlier
        records."""
        self._deltas: dict[tuple[int, int], MetadataDelta] = {}
        """The newest deltas that were sent, by first and end offset; one object serves all
        brokers."""
        self._effects: list[Effect] = []
        self._answers: list[Effect] = []
        self._now_ms = 0
        self.mutation_quotas = MutationQuotas(self)
        self.features = Features(self, features)
        authorizer = authorizer_of(
            config.authorizer_class_name, config.super_users, config.allow_everyone_if_no_acl_found
        )
        self.authorization = (
            None if authorizer is None else ControllerAuthorization(self, authorizer)
        )
        self.acls = AclControl(self, authorizer is not None, acls)
        self.quorum = Quorum(self)
        self.partitions = Partitions(self)
        self.leader_elections = LeaderElections(self, self.partitions)
        self.topics = Topics(self, self.mutation_quotas)
        additions = PartitionAdditions(self, self.mutation_quotas)
        self.bootstrap = Bootstrap(self, self.topics, additions, bootstrap_topics, expected_brokers)
        self.membership = Membership(self, self.partitions, self.bootstrap.on_broker_unfenced)
        self._scram = ScramCredentials(self, users)
        self._tokens = DelegationTokens(self, tokens)
        parts: tuple[Part, ...] = (
            self.membership,
            ProducerIdBlocks(self),
            IsrProposals(self, self.partitions),
            self.leader_elections,
            Reassignments(self, self.partitions),
            self.topics,
            additions,
            Configs(self, self.partitions),
            ClientQuotaControl(self),
            self._scram,
            self._tokens,
            self.acls,
            self.features,
            self.quorum,
        )
        self._handlers = handlers_of(parts)

    # --------------------------------------------------------------------------- as a Node

    @property
    def deadline_ms(self) -> int | None:
        next_ms = self.timers.next_ms
        return next_ms if next_ms < NEVER_MS else None

    def step(self, now_ms: int, incoming: Input) -> Sequence[Effect]:
        """Take one input; return the effects, in order."""
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
                self.leader_elections.move(incoming)
            case PeerDisconnected(peer=peer):
                # The broker's process is gone, so no answer is needed. Its session will expire.
                self._stop_waiting(peer)
            case _:
                # PeerResponse cannot arrive, because the controller sends no requests; Request
                # cannot, because it has no clients; Shutdown cannot, because its process is killed,
                # never shut down.
                pass
        if self._waiting and self._news_end != len(self._log):
            self._send_news()
        self._effects += self._answers
        effects, self._effects, self._answers = self._effects, [], []
        return effects

    def _start(self, now_ms: int) -> None:
        self.log.epoch += 1
        if self._log:
            for record in self._log:
                self._apply(record)
            self.membership.take_over(now_ms)
        else:
            initial = [*self._scram.initial_records(), *self.acls.initial_records()]
            self.commit([*self.features.initial_records(), *initial])
        self.bootstrap.start(now_ms)
        self.leader_elections.start(now_ms)
        self._tokens.start(now_ms)

    def _answer(self, request: PeerRequest, now_ms: int) -> None:
        message = request.body
        envelope = message if isinstance(message, Envelope) else None
        handler = self._handlers.get(type(message if envelope is None else envelope.body).__name__)
        if handler is None:
            return  # no message for a controller: the sender's timeout expires
        if envelope is None:
            body = handler(message, now_ms)
        else:
            body = self._answer_client(envelope, handler, now_ms)
        self._answers.append(
            Send(request.source, PeerResponse(self.node_id, request.request_id, body))
        )

    def _answer_client(self, envelope: Envelope, handler: Handler, now_ms: int) -> object:
        """The answer to a client's request, within its rights and its quota."""
        if envelope.is_strict is not None:
            self.mutation_quotas.begin(envelope, now_ms)
        if self.authorization is None:
            body = handler(envelope.body, now_ms)
        else:
            body = self.authorization.answer(envelope, handler, now_ms)
        if envelope.is_strict is not None:
            self.mutation_quotas.end(body)
        return body

    # -------------------------------------------------------------------- the metadata log

    def commit(self, records: Sequence[MetadataRecord]) -> None:
        """Append records to the log and apply them.  Nothing else changes the metadata."""
        for record in records:
            self._log.append(record)
            self._apply(record)
        if records:
            self.log.end_batch()

    def _apply(self, record: MetadataRecord) -> None:
        match record:
            case PartitionRecord():
                self.partitions.replay(record)
                self.image.apply(record)
            case TopicRecord():
                self.topics.replay(record)
                self.image.apply(record)
            case RemoveTopicRecord(topic_id=topic_id):
                removed = self.image.topic_by_id(topic_id)
                assert removed is not None, record
                self.topics.replay_removal(removed)
                self.partitions.replay_removal(removed)
                self.image.apply(record)
            case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
                self.image.apply(record)
                if self.authorization is not None:
                    self.authorization.on_acls_changed()
            case ConfigRecord(resource_type=kind, resource_name=name):
                self.image.apply(record)
                if (kind, name) == (BROKER_RESOURCE, CLUSTER_DEFAULT):
                    self.cluster_config = self._with_dynamic_defaults()
            case _:
                self.image.apply(record)

    @property
    def sessions(self) -> Sessions:
        return self.membership.sessions

    @property
    def end_offset(self) -> int:
        """Offset that the next record will get."""
        return len(self._log)

    def _with_dynamic_defaults(self) -> BrokerConfig:
        dynamic = self.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
        return self.config.override(dynamic)

    def _fetch_metadata(self, request: PeerRequest, fetch: MetadataFetch, now_ms: int) -> None:
        """Answer a broker's fetch from `offset` on; the broker has all records before it."""
        self.quorum.record_fetch(request.source, fetch.offset, now_ms)
        self.membership.on_metadata_applied(request.source, fetch.offset - 1)
        self._stop_waiting(request.source)
        self._waiting[request.source] = _WaitingFetch(request.request_id, fetch.offset)
        if fetch.offset < len(self._log):
            self._news_end = fetch.offset
        else:
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
        end = self._news_end = len(self._log)
        for broker_id, waiting in list(self._waiting.items()):
            if waiting.offset < end:
                self._stop_waiting(broker_id)
                self._send_records(broker_id, waiting)

    def _send_records(self, broker_id: int, waiting: _WaitingFetch) -> None:
        delta = self._delta(waiting.offset, self._fetch_end(broker_id, waiting.offset))
        body = MetadataFetchResponse(delta)
        self._effects.append(Send(broker_id, PeerResponse(self.node_id, waiting.request_id, body)))

    def _fetch_end(self, broker_id: int, offset: int) -> int:
        """The end of the answer to a broker's fetch.  A broker gets all records up to its
        registration at once, because roles assigned before the registration must not take effect.
        Kafka: MetadataLoader, which publishes nothing until it has caught up."""
        session = self.membership.sessions.get(broker_id)
        if session is not None and offset <= session.registration_offset:
            return len(self._log)
        return self.log.fetch_end(offset)

    def _delta(self, first_offset: int, end_offset: int) -> MetadataDelta:
        deltas, key = self._deltas, (first_offset, end_offset)
        delta = deltas.get(key)
        if delta is None:
            delta = deltas[key] = MetadataDelta(first_offset, self._log[first_offset:end_offset])
            if len(deltas) > DELTAS_KEPT:
                del deltas[next(iter(deltas))]
        return delta

    def _stop_waiting(self, broker_id: int) -> None:
        if self._waiting.pop(broker_id, None) is not None:
            self.timers.cancel(("metadata fetch", broker_id))

    # ------------------------------------------------------------------------------- notes

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Report a decision; the result identifies the note, as the cause of other notes."""
        self.log.note_count += 1
        note_id = (self.node_id, self.log.note_count)
        self._effects.append(Note(note_id, self._now_ms, event, cause))
        return note_id
