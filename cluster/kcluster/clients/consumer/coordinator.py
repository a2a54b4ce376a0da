"""A consumer's way to its group's coordinator, and what it is in the group.

Owns: FindCoordinator, the connection of its own, when it is given up; Membership, which is all
state of a member and every change of it.  Never: joins (group.py), commits (commits.py).
Kafka: AbstractCoordinator (coordinator, MemberState, Generation).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from kcluster.clients.connections import InFlightRequest, NetworkClient, OnAnswer
from kcluster.clients.consumer.settings import ConsumerSettings
from kcluster.clients.metadata import NOBODY, Metadata, backoff_ms
from kcluster.clients.wire import SECOND_CONNECTION, broker_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

NO_GENERATION: Final = -1
NO_MEMBER_ID: Final = ""
COORDINATOR_GONE: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)

_FIND_COORDINATOR: Final = int(ApiKey.FIND_COORDINATOR)
_FIRST_VERSION_WITH_MANY_KEYS: Final = 4
_GROUP: Final = 0


class MemberState(IntEnum):
    """Kafka: AbstractCoordinator.MemberState."""

    UNJOINED = 0
    PREPARING_REBALANCE = 1
    COMPLETING_REBALANCE = 2
    STABLE = 3


class Membership:
    """What a consumer is in its group.  `generation`: (generation id, member id) of requests."""

    def __init__(self) -> None:
        self.state = MemberState.UNJOINED
        self.generation_id = NO_GENERATION
        self.member_id = NO_MEMBER_ID
        self.protocol_name = ""
        self.rejoin_needed = True
        self.needs_prepare = True
        """What it has is to be let go of before it joins."""
        self.rejoin_reason = ""

    @property
    def generation(self) -> tuple[int, str]:
        return self.generation_id, self.member_id

    @property
    def is_rebalancing(self) -> bool:
        return self.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)

    @property
    def heartbeats(self) -> bool:
        """Whether the coordinator waits for heartbeats of this member."""
        return self.state in (MemberState.COMPLETING_REBALANCE, MemberState.STABLE)

    def request_rejoin(self, reason: str) -> None:
        """Join again at the next poll."""
        self.rejoin_reason = reason
        self.rejoin_needed = True

    def reset(self, reason: str, *, forget_member_id: bool) -> None:
        """No longer a member of any generation: join again."""
        self.state = MemberState.UNJOINED
        self.generation_id = NO_GENERATION
        self.protocol_name = ""
        if forget_member_id:
            self.member_id = NO_MEMBER_ID
        self.needs_prepare = True
        self.request_rejoin(reason)

    def refused(self, api: str, error: ErrorCode) -> None:
        """An answer said that this member or its generation is none.  The member id is still good
        after ILLEGAL_GENERATION."""
        self.reset(
            f"encountered {error.name} from {api} response",
            forget_member_id=error is not ErrorCode.ILLEGAL_GENERATION,
        )


class Coordinator:
    """Where the coordinator is.  `fatal`: the error that the application gets, "" for none.
    `retry_ms`: when `is_ready` may have another answer without one from a broker; it is as of the
    present turn of the consumer, which sets it back."""

    def __init__(
        self, settings: ConsumerSettings, metadata: Metadata, network: NetworkClient
    ) -> None:
        self.fatal = ""
        self.retry_ms = NEVER_MS
        self._settings = settings
        self._metadata = metadata
        self._network = network
        self._connection = NOBODY
        self._asks = False
        self._may_ask_ms = 0
        self._failures = 0

    @property
    def is_known(self) -> bool:
        """Whether there is one, as far as is known."""
        return self._connection != NOBODY

    @property
    def broker_id(self) -> int:
        """Who it is; NOBODY if that is not known."""
        return NOBODY if self._connection == NOBODY else broker_of(self._connection)

    def is_ready(self, now_ms: int) -> bool:
        """Whether it can be asked now; if not, it is looked for, or connected to."""
        connection = self._connection
        if connection != NOBODY:
            network = self._network
            if network.is_ready(connection, now_ms):
                return True
            if not network.is_failed(connection):
                return False
            self._lose(now_ms)
        self._find(now_ms)
        return False

    def _lose(self, now_ms: int) -> None:
        self._connection = NOBODY
        self._failures += 1
        if self._failures > 1:
            self._wait(now_ms)

    def _wait(self, now_ms: int) -> None:
        settings = self._settings
        self._may_ask_ms = now_ms + backoff_ms(
            max(0, self._failures - 1),
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
            self._network.rng,
        )

    def mark_unknown(self, now_ms: int) -> None:
        """It says that it is none, or is silent: hang up, and look for another."""
        connection, self._connection = self._connection, NOBODY
        if connection != NOBODY:
            self._network.disconnect(connection, now_ms)

    # ---------------------------------------------------------------------------- finding

    def _find(self, now_ms: int) -> None:
        if self._asks:
            return
        if self._may_ask_ms > now_ms:
            self.retry_ms = self._may_ask_ms
            return
        network = self._network
        broker_id = network.least_loaded(now_ms)
        if broker_id == NOBODY or not network.is_ready(broker_id, now_ms):
            if broker_id == NOBODY:
                self._metadata.request_update()
                self._may_ask_ms = now_ms + self._settings.retry_backoff_ms
                self.retry_ms = self._may_ask_ms
            return
        group = self._settings.group_id
        version = network.version(broker_id, _FIND_COORDINATOR)
        if version < _FIRST_VERSION_WITH_MANY_KEYS:
            body = m.FindCoordinatorRequest(key=group, key_type=_GROUP)
        else:
            body = m.FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=[group])
        self._asks = True
        network.send(broker_id, _FIND_COORDINATOR, body, now_ms, self._on_found)

    def _on_found(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        self._asks = False
        if failure:
            self._network.tell(now_ms, _FIND_COORDINATOR, failure)
            self._not_found(now_ms)
            return
        found = body
        if asked.version >= _FIRST_VERSION_WITH_MANY_KEYS:
            (found,) = body.coordinators
        if found.error_code:
            error = error_of(found.error_code)
            self._network.tell(now_ms, _FIND_COORDINATOR, error.name)
            if not error.retriable:
                self.fatal = error.name
            self._not_found(now_ms)
            return
        self._connection = found.node_id + SECOND_CONNECTION
        is_ready = self._network.is_ready(self._connection, now_ms)
        if not is_ready and self._network.is_failed(self._connection):
            # It is down, and nobody has noticed yet.
            self._lose(now_ms)
            self._wait(now_ms)

    def _not_found(self, now_ms: int) -> None:
        self._failures += 1
        self._wait(now_ms)
        self._metadata.request_update()

    # ----------------------------------------------------------------------------- asking

    def ask(
        self,
        api_key: int,
        body: Any,
        now_ms: int,
        on_answer: OnAnswer,
        *,
        context: Any = None,
        timeout_ms: int = -1,
    ) -> None:
        """Ask the coordinator, which `is_ready`.  If no answer comes it is no longer known when
        `on_answer` is called, and the failure is in the ledger."""

        def answered(asked: InFlightRequest, answer: Any, failure: str, then_ms: int) -> None:
            if failure:
                self._network.tell(then_ms, api_key, failure)
                if asked.broker_id == self._connection:
                    self._connection = NOBODY
            else:
                self._failures = 0
            on_answer(asked, answer, failure, then_ms)

        self._network.send(
            self._connection,
            api_key,
            body,
            now_ms,
            answered,
            context=context,
            timeout_ms=timeout_ms,
        )
