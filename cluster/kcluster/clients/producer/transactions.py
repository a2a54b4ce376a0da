"""A producer's transactions: their states, and the requests to the coordinators.

Owns: the state of a producer's transactions, FindCoordinator, InitProducerId, AddPartitionsToTxn,
AddOffsetsToTxn, TxnOffsetCommit, EndTxn, their order, retries and errors.  Never: sends batches
(sender.py), assigns sequences (identity.py), decides which records a transaction has
(transactional_workload.py). Kafka: TransactionManager of a producer with transactional.id; KIP-98,
KIP-360, KIP-447, KIP-890.

Version 1: partitions are added by AddPartitionsToTxn before their first batch, and the epoch stays.
Version 2: the first batch adds its partition, and the answer to EndTxn has the next epoch.

    UNINITIALIZED -> INITIALIZING -> READY -> IN_TRANSACTION -> COMMITTING -> READY
                                                            `-> ABORTING ---> READY
    An error that an abort repairs leads to ABORTABLE_ERROR, any other to FATAL_ERROR.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

from kcluster.clients.connections import GROUP_KEY, TRANSACTION_KEY, ClientRequest, NetworkClient
from kcluster.clients.ledger import Partition, TransactionOffsets
from kcluster.clients.metadata import NO_BROKER
from kcluster.clients.producer.batches import NO_PRODUCER_ID
from kcluster.clients.producer.settings import TRANSACTIONS_V1, TRANSACTIONS_V2, ProducerSettings
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.codec.schema import ZERO_UUID
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

ADD_PARTITIONS_RETRY_BACKOFF_MS: Final = 20
"""The backoff for the first partitions of a transaction while the previous one is being
completed."""
NO_NEW_EPOCH: Final = "NO_NEW_EPOCH"
"""The ledger's name for the IllegalStateException of beginTransaction() in a producer with
transactions of version 1 whose last batches had timed out while it aborted: it waits for a new
epoch that it has not requested.  Seen with Kafka's client 4.4.0 (resetTransactionState)."""
_LAST_V1_VERSIONS: Final = {int(ApiKey.END_TXN): 4, int(ApiKey.TXN_OFFSET_COMMIT): 4}
_LAST_CLIENT_VERSIONS: Final = {int(ApiKey.ADD_PARTITIONS_TO_TXN): 3}
"""The last version of each API that clients use; later versions are for brokers."""
_LAST_COMMIT_BY_NAMES: Final = 5
"""The last version of TxnOffsetCommit with topic names; from v6 on it has topic ids (KIP-1319)."""
_NO_LIMIT: Final = 1 << 15
_INIT_PRODUCER_ID: Final = int(ApiKey.INIT_PRODUCER_ID)
_ADD_PARTITIONS: Final = int(ApiKey.ADD_PARTITIONS_TO_TXN)
_ADD_OFFSETS: Final = int(ApiKey.ADD_OFFSETS_TO_TXN)
_TXN_OFFSET_COMMIT: Final = int(ApiKey.TXN_OFFSET_COMMIT)
_END_TXN: Final = int(ApiKey.END_TXN)

_GONE: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_FENCED: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
_WRONG_ID: Final = (ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
_FATAL_BATCHES: Final = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
_GROUP_ERRORS: Final = (
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.TRANSACTION_ABORTABLE,
)
"""Errors of TxnOffsetCommit after which the transaction can be aborted."""


class ClientTransactionState(IntEnum):
    """The states of a producer's transactions.  Kafka: TransactionManager.State."""

    UNINITIALIZED = 0
    INITIALIZING = 1
    READY = 2
    IN_TRANSACTION = 3
    COMMITTING = 4
    ABORTING = 5
    ABORTABLE_ERROR = 6
    FATAL_ERROR = 7


class _Priority(IntEnum):
    """The order in which requests are sent.  Kafka: TransactionManager.Priority."""

    INIT_PRODUCER_ID = 1
    ADD = 2
    END = 3
    EPOCH_BUMP = 4


Handler = Callable[["_Request", Any, int], None]


class _Request:
    """A request to be sent.  `group`: the group whose coordinator gets it; None: it goes to the
    transaction coordinator."""

    __slots__ = ("api_key", "body", "group", "handle", "max_version", "priority", "retry_at_ms")

    def __init__(
        self, priority: _Priority, api_key: int, body: Any, handle: Handler, group: str | None
    ) -> None:
        self.priority = priority
        self.api_key = api_key
        self.body = body
        self.handle = handle
        self.group = group
        self.max_version = _NO_LIMIT
        self.retry_at_ms = 0


class Transactions:
    """The transactions of one producer, one after the other.

    `error`: Kafka's name of the error that led to ABORTABLE_ERROR or FATAL_ERROR. `retry_ms`: the
    time at which `run` must be called without a response.  `is_commit_sent`: EndTxn with the commit
    of the current transaction was sent, so it may be committed.
    """

    def __init__(
        self, settings: ProducerSettings, network: NetworkClient, max_version: int
    ) -> None:
        self.state = ClientTransactionState.UNINITIALIZED
        self.error = ""
        self.retry_ms = NEVER_MS
        self.version = TRANSACTIONS_V1
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.partitions: dict[Partition, None] = {}
        """The partitions to which batches may be sent."""
        self.is_commit_sent = False
        self._settings = settings
        self._network = network
        self._max_version = max_version
        self._new_partitions: dict[Partition, None] = {}
        self._pending: list[_Request] = []
        self._in_flight: _Request | None = None
        self._is_finding = False
        self._coordinators: dict[str | None, int] = {}
        """The coordinators by group; None: the transaction coordinator."""
        self._is_started = False
        """Whether the coordinator may know of the transaction, so that it must be ended there."""
        self._needs_bump = False
        """Whether the epoch must be incremented after the abort (KIP-360)."""
        self._find_at_ms = 0

    # --------------------------------------------------------------------- the application

    @property
    def is_fatal(self) -> bool:
        """Whether the producer can only be closed."""
        return self.state is ClientTransactionState.FATAL_ERROR

    @property
    def is_busy(self) -> bool:
        """Whether initTransactions, commitTransaction or abortTransaction has not returned."""
        return self.state in (
            ClientTransactionState.INITIALIZING,
            ClientTransactionState.COMMITTING,
            ClientTransactionState.ABORTING,
        )

    @property
    def is_request_in_flight(self) -> bool:
        """Whether a request to a coordinator has no response yet; meanwhile no batches are sent."""
        return self._in_flight is not None or self._is_finding

    @property
    def has_open_offsets(self) -> bool:
        """Whether a sendOffsetsToTransaction has not returned."""
        requests = (*self._pending, *((self._in_flight,) if self._in_flight else ()))
        return any(x.api_key in (_ADD_OFFSETS, _TXN_OFFSET_COMMIT) for x in requests)

    def initialize(self) -> None:
        """Start initTransactions()."""
        assert self.state is ClientTransactionState.UNINITIALIZED, self.state
        self.state = ClientTransactionState.INITIALIZING
        self._request_id(_Priority.INIT_PRODUCER_ID)

    def begin(self) -> None:
        """Do beginTransaction()."""
        assert self.state is ClientTransactionState.READY, self.state
        self.state = ClientTransactionState.IN_TRANSACTION
        self.is_commit_sent = False
        finalized = self._network.transaction_version
        self.version = TRANSACTIONS_V2 if finalized >= TRANSACTIONS_V2 else TRANSACTIONS_V1
        self.version = min(self.version, self._max_version)

    def add_partition(self, partition: Partition) -> None:
        """Add the partition of a record to the transaction.  Kafka: maybeAddPartition."""
        if partition in self.partitions or partition in self._new_partitions:
            return
        if self.version >= TRANSACTIONS_V2:
            self.partitions[partition] = None
            self._is_started = True
        else:
            self._new_partitions[partition] = None

    def send_offsets(self, offsets: TransactionOffsets) -> None:
        """Start sendOffsetsToTransaction()."""
        assert self.state is ClientTransactionState.IN_TRANSACTION, self.state
        if self.version >= TRANSACTIONS_V2:
            self._is_started = True
            self._commit_offsets(offsets)
            return
        body = m.AddOffsetsToTxnRequest(
            self._settings.transactional_id, self.producer_id, self.producer_epoch, offsets.group
        )

        def handle(request: _Request, response: Any, now_ms: int) -> None:
            error = error_of(response.error_code)
            if not error:
                self._is_started = True
                self._commit_offsets(offsets)
            elif error is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                self._failed(request, error, now_ms)
                self._abortable(error.name)
            else:
                self._refused(request, error, now_ms)

        self._pending.append(_Request(_Priority.ADD, _ADD_OFFSETS, body, handle, None))

    def end(self, *, commit: bool) -> None:
        """Start commitTransaction() or abortTransaction()."""
        if commit:
            assert self.state is ClientTransactionState.IN_TRANSACTION, self.state
            self.state = ClientTransactionState.COMMITTING
        else:
            states = (ClientTransactionState.IN_TRANSACTION, ClientTransactionState.ABORTABLE_ERROR)
            assert self.state in states, self.state
            self.state = ClientTransactionState.ABORTING
            self._new_partitions = {}
        if self.error != ErrorCode.INVALID_PRODUCER_ID_MAPPING.name:
            # After this error the coordinator accepts no EndTxn.
            body = m.EndTxnRequest(
                self._settings.transactional_id, self.producer_id, self.producer_epoch, commit
            )
            self._pending.append(_Request(_Priority.END, _END_TXN, body, self._on_ended, None))
        if self._needs_bump and self.version < TRANSACTIONS_V2:
            self._request_id(_Priority.EPOCH_BUMP)

    # ------------------------------------------------------------------------- the batches

    @property
    def has_waiting_requests(self) -> bool:
        """Whether a request to a coordinator waits to be sent."""
        return bool(self._pending)

    def fail(self, error: str) -> None:
        """Fail for good: the producer can only be closed."""
        self._fatal(error)

    def batch_failed(self, error: ErrorCode) -> None:
        """Record that a batch failed for good.  Kafka: maybeTransitionToErrorState."""
        if error in _FATAL_BATCHES:
            self._fatal(error.name)
            return
        if self.version < TRANSACTIONS_V2 and not self.is_busy:
            self._needs_bump = True
        self._abortable(error.name)

    def sequences_are_lost(self, error: ErrorCode) -> None:
        """Record that all batches of a partition have ended, and the last of them without an
        answer: only a new epoch begins its sequences anew.  Kafka: maybeResolveSequences, also
        while a transaction ends."""
        if self.version < TRANSACTIONS_V2:
            self._needs_bump = True
        self._abortable(error.name)

    # --------------------------------------------------------------------------- each turn

    def run(self, now_ms: int, *, has_incomplete_batches: bool) -> bool:
        """Send the next request, if one can be sent.  Returns whether a call of the application has
        returned without a request.  Kafka: nextRequest."""
        self.retry_ms = NEVER_MS
        if self._new_partitions and self.state is not ClientTransactionState.ABORTING:
            self._request_partitions()
        while self._pending and not self.is_request_in_flight:
            request = min(self._pending, key=_priority)
            is_end = request.priority is _Priority.END
            if is_end and has_incomplete_batches:
                return False
            if is_end and not self._is_started:
                self._pending.remove(request)
                self._completed()
                return not self.is_busy
            if now_ms < request.retry_at_ms:
                self.retry_ms = request.retry_at_ms
                return False
            if not self._send(request, now_ms):
                return False
        return False

    def _send(self, request: _Request, now_ms: int) -> bool:
        """Send a request to its coordinator; False if the request cannot be sent yet."""
        network, api_key = self._network, request.api_key
        broker_id = self._coordinators.get(request.group, NO_BROKER)
        if broker_id == NO_BROKER:
            self._find(request.group, now_ms)
            return False
        if not network.is_ready(broker_id, now_ms):
            if network.connection_failed(broker_id):
                # The broker is down, and the others may not have noticed.
                self._coordinators.pop(request.group)
                self._find_at_ms = now_ms + self._settings.retry_backoff_ms
                self._find(request.group, now_ms)
            return False
        version = min(network.version(broker_id, api_key), request.max_version)
        if self.version < TRANSACTIONS_V2:
            version = min(version, _LAST_V1_VERSIONS.get(api_key, version))
        version = min(version, _LAST_CLIENT_VERSIONS.get(api_key, version))
        self._pending.remove(request)
        self._in_flight = request
        if api_key == _END_TXN and request.body.committed:
            self.is_commit_sent = True
        network.send(
            broker_id,
            api_key,
            request.body,
            now_ms,
            self._on_response,
            context=request,
            version=version,
        )
        return True

    def _on_response(self, sent: ClientRequest, now_ms: int) -> None:
        request: _Request = sent.context
        self._in_flight = None
        if sent.failure:
            self._coordinators.pop(request.group, None)
            self._retry(request, now_ms)
        else:
            request.handle(request, sent.response, now_ms)

    def _retry(self, request: _Request, now_ms: int, backoff_ms: int = -1) -> None:
        # Kafka: retry.backoff.ms, without the exponential increase of other requests.
        if backoff_ms < 0:
            backoff_ms = self._settings.retry_backoff_ms
        request.retry_at_ms = now_ms + min(backoff_ms, self._settings.retry_backoff_ms)
        self._pending.append(request)

    # ------------------------------------------------------------------------------ errors

    def _failed(self, request: _Request, error: ErrorCode, now_ms: int) -> None:
        self._network.record_error(now_ms, request.api_key, error.name)

    def _refused(self, request: _Request, error: ErrorCode, now_ms: int) -> None:
        """Handle the errors that all requests to the transaction coordinator have in common."""
        self._failed(request, error, now_ms)
        if error in _GONE:
            self._coordinators.pop(request.group, None)
            self._retry(request, now_ms)
        elif error.retriable or error is ErrorCode.CONCURRENT_TRANSACTIONS:
            self._retry(request, now_ms)
        elif error in _FENCED:
            self._fatal(ErrorCode.PRODUCER_FENCED.name)
        elif error in _WRONG_ID:
            if self.version < TRANSACTIONS_V2:
                self._needs_bump = True
            self._abortable(error.name)
        elif error is ErrorCode.TRANSACTION_ABORTABLE:
            self._abortable(error.name)
        else:
            self._fatal(error.name)

    def _abortable(self, error: str) -> None:
        if self.state not in (ClientTransactionState.ABORTING, ClientTransactionState.FATAL_ERROR):
            self.state = ClientTransactionState.ABORTABLE_ERROR
            self.error = error
            self._pending = []

    def _fatal(self, error: str) -> None:
        if self.state is not ClientTransactionState.FATAL_ERROR:
            self.state = ClientTransactionState.FATAL_ERROR
            self.error = error
            self._pending = []

    # ------------------------------------------------------------------------ coordinators

    def _find(self, group: str | None, now_ms: int) -> None:
        if now_ms < self._find_at_ms:
            self.retry_ms = self._find_at_ms
            return
        network = self._network
        broker_id = network.least_loaded(now_ms)
        if broker_id == NO_BROKER or not network.is_ready(broker_id, now_ms):
            if broker_id == NO_BROKER:
                self.retry_ms = self._find_at_ms = now_ms + self._settings.retry_backoff_ms
            return
        key = self._settings.transactional_id if group is None else group
        key_type = TRANSACTION_KEY if group is None else GROUP_KEY
        self._is_finding = True
        network.find_coordinator(broker_id, key_type, key, now_ms, self._on_found, (group,))

    def _on_found(self, sent: ClientRequest, now_ms: int) -> None:
        self._is_finding = False
        (group,) = sent.context
        error = self._network.refusal(sent, now_ms)
        if not error:
            self._coordinators[group] = sent.response.node_id
        elif error.retriable:
            self._find_at_ms = now_ms + self._settings.retry_backoff_ms
        elif error in (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TRANSACTION_ABORTABLE):
            self._abortable(error.name)
        else:
            self._fatal(error.name)

    # ---------------------------------------------------------------------- InitProducerId

    def _request_id(self, priority: _Priority) -> None:
        is_bump = priority is _Priority.EPOCH_BUMP
        body = m.InitProducerIdRequest(
            self._settings.transactional_id,
            self._settings.transaction_timeout_ms,
            self.producer_id if is_bump else NO_PRODUCER_ID,
            self.producer_epoch if is_bump else -1,
        )
        self._pending.append(_Request(priority, _INIT_PRODUCER_ID, body, self._on_id, None))

    def _on_id(self, request: _Request, response: Any, now_ms: int) -> None:
        error = error_of(response.error_code)
        if error:
            self._refused(request, error, now_ms)
            return
        self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        self.state = ClientTransactionState.READY
        self.error = ""

    # ---------------------------------------------------------------- partitions and offsets

    def _request_partitions(self) -> None:
        """Add all new partitions, in one request."""
        added, self._new_partitions = self._new_partitions, {}
        topics: dict[str, list[int]] = {}
        for topic, index in added:
            topics.setdefault(topic, []).append(index)
        entry = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        body = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._settings.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[entry(topic, numbers) for topic, numbers in topics.items()],
        )

        def handle(request: _Request, response: Any, now_ms: int) -> None:
            errors = [
                error_of(result.partition_error_code)
                for topic in response.results_by_topic_v3_and_below
                for result in topic.results_by_partition
                if result.partition_error_code
            ]
            if not errors:
                self.partitions.update(added)
                self._is_started = True
                return
            causes = [error for error in errors if error is not ErrorCode.OPERATION_NOT_ATTEMPTED]
            error = causes[0] if causes else errors[0]
            if error is ErrorCode.CONCURRENT_TRANSACTIONS and not self.partitions:
                self._failed(request, error, now_ms)
                self._retry(request, now_ms, ADD_PARTITIONS_RETRY_BACKOFF_MS)
            elif error is ErrorCode.TOPIC_AUTHORIZATION_FAILED or not causes:
                self._failed(request, error, now_ms)
                self._abortable(error.name)
            else:
                self._refused(request, error, now_ms)

        self._pending.append(_Request(_Priority.ADD, _ADD_PARTITIONS, body, handle, None))

    def _commit_offsets(self, offsets: TransactionOffsets) -> None:
        left = dict(offsets.offsets)
        # As in Kafka, retries keep the ids: a topic that was created again is another topic.
        metadata = self._network.metadata
        ids = {topic: metadata.topic_id(topic) for topic, _ in left}
        names = {topic_id: topic for topic, topic_id in ids.items()}
        topic_entry = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        entry = m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition

        def topics_of() -> list[Any]:
            topics: dict[str, list[Any]] = {}
            for (topic, index), (offset, epoch) in left.items():
                partition = entry(index, offset, epoch, committed_metadata="")
                topics.setdefault(topic, []).append(partition)
            return [topic_entry(topic, ids[topic], entries) for topic, entries in topics.items()]

        def handle(request: _Request, response: Any, now_ms: int) -> None:
            for topic in response.topics:
                for partition in topic.partitions:
                    error = error_of(partition.error_code)
                    key = (topic.name or names.get(topic.topic_id, ""), partition.partition_index)
                    if not error:
                        left.pop(key, None)
                        continue
                    self._network.record_error(now_ms, _TXN_OFFSET_COMMIT, error.name, key)
                    if error in _GONE or error is ErrorCode.REQUEST_TIMED_OUT:
                        self._coordinators.pop(offsets.group, None)
                    elif error in _GROUP_ERRORS:
                        self._abortable(error.name)
                        return
                    elif error in _FENCED:
                        self._fatal(ErrorCode.PRODUCER_FENCED.name)
                        return
                    elif not error.retriable and error is not ErrorCode.CONCURRENT_TRANSACTIONS:
                        self._fatal(error.name)
                        return
            if left:
                request.body.topics = topics_of()
                self._retry(request, now_ms)

        body = m.TxnOffsetCommitRequest(
            transactional_id=self._settings.transactional_id,
            group_id=offsets.group,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            generation_id_or_member_epoch=offsets.generation,
            member_id=offsets.member,
            group_instance_id=offsets.instance or None,
            topics=topics_of(),
        )
        request = _Request(_Priority.ADD, _TXN_OFFSET_COMMIT, body, handle, offsets.group)
        if ZERO_UUID in names:
            request.max_version = _LAST_COMMIT_BY_NAMES
        self._pending.append(request)

    # ------------------------------------------------------------------------------ EndTxn

    def _on_ended(self, request: _Request, response: Any, now_ms: int) -> None:
        error = error_of(response.error_code)
        if error:
            self._refused(request, error, now_ms)
            return
        if response.producer_id >= 0:
            self.producer_id, self.producer_epoch = response.producer_id, response.producer_epoch
        self._completed()

    def _completed(self) -> None:
        is_bump = any(x.priority is _Priority.EPOCH_BUMP for x in self._pending)
        self.state = (
            ClientTransactionState.INITIALIZING if is_bump else ClientTransactionState.READY
        )
        self.error = ""
        if self._needs_bump and not is_bump:
            self._fatal(NO_NEW_EPOCH)
        self._needs_bump = self._is_started = False
        self._new_partitions = {}
        self.partitions = {}


def _priority(request: _Request) -> int:
    return int(request.priority)
