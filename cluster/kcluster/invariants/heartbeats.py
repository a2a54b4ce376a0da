"""What the controller must make of heartbeats, and of their absence: a broker that is silent is
fenced, and a controlled shutdown ends when nothing is left to wait for.

Owns: what brokers have told the controller and when, the heartbeats whose answer must say that the
broker may shut down, and the brokers that are silent for too long, or shut down unfenced.  Never:
changes anything, looks at the controller's sessions.  Kafka: BrokerHeartbeatManager.

A broker that shuts down waits until it leads nothing, and until every active broker has applied the
metadata that says so.  It does not wait for brokers that are fenced or shut down themselves.  For
a new controller, each session begins when it becomes active, and a broker shuts down only once it
has asked this controller, too.  A heartbeat of a broker's earlier life, which comes late, changes
nothing.  A new process is registered when the session of the last one has ended, however that
process ended (KIP-631).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Final

from kcluster.contract import PeerResponse
from kcluster.controller.membership.liveness import Session, Sessions
from kcluster.invariants.facts import (
    HeldBack,
    Measure,
    Outdated,
    RegisteredEarly,
    Silent,
    StoppedUnfenced,
)
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import BrokerRegistration
from kcluster.protocol import messages as m

_ASKED_BEFORE: Final = 2
"""A controller that is new hears first of the shutdown, and then of the other brokers' metadata."""


class BrokerHeartbeats:
    """The heartbeats of one run.  `look` is called from time to time."""

    __slots__ = (
        "_active_since_ms", "_asked", "_due", "_found", "_newest", "_registered", "_silent",
        "_stale",
    )  # fmt: skip

    def __init__(self) -> None:
        self._newest: dict[tuple[int, int], tuple[int, int]] = {}
        """(time, metadata offset) of the newest heartbeat, by broker and broker epoch."""
        self._asked: dict[tuple[int, int], int] = {}
        """How often each broker, in its epoch, has asked this controller whether it may end."""
        self._active_since_ms = -1
        """The time since when a controller is active; -1: it is not."""
        self._due: dict[int, tuple[int, int, HeldBack]] = {}
        """(request id, broker epoch, fact) of the newest heartbeat that must end each broker's
        shutdown."""
        self._silent: dict[int, int] = {}
        """The brokers that were silent for too long at the last look, each with its last sign of
        life."""
        self._stale: tuple[int, Outdated, Session] | None = None
        """The heartbeat of an earlier life that the controller handles in this step: its broker,
        and the session of the present life as it was before."""
        self._registered: dict[int, BrokerRegistration] = {}
        """The last registration of each broker."""
        self._found: set[tuple[str, int, int]] = set()
        """What was found in a broker epoch, and is not reported again."""

    def on_new_controller(self, now_ms: int) -> None:
        """Forget what the last controller was told."""
        self._newest.clear()
        self._asked.clear()
        self._due.clear()
        self._stale = None
        self._active_since_ms = now_ms

    def on_heartbeat(
        self,
        request_id: int,
        heartbeat: m.BrokerHeartbeatRequest,
        image: MetadataImage,
        sessions: Sessions,
        now_ms: int,
    ) -> None:
        """Record a heartbeat that arrives at the controller, which knows `image` and has these
        sessions."""
        broker = heartbeat.broker_id
        of = (broker, heartbeat.broker_epoch)
        self._newest[of] = (now_ms, heartbeat.current_metadata_offset)
        known = image.brokers.get(broker)
        session = sessions.get(broker)
        if known is not None and session is not None and heartbeat.broker_epoch < known.epoch:
            stale = Outdated(Measure.BROKER_EPOCH, heartbeat.broker_epoch, known.epoch)
            self._stale = broker, stale, copy(session)
        asked = 0
        if heartbeat.want_shut_down:
            asked = self._asked[of] = self._asked.get(of, 0) + 1
        if (
            known is not None
            and known.epoch == heartbeat.broker_epoch
            and known.in_controlled_shutdown
            and not known.fenced
            and asked > _ASKED_BEFORE
            and ("held back", broker, known.epoch) not in self._found
            and self._all_know(image)
            and not _is_needed(broker, image)
        ):
            self._due[broker] = (request_id, known.epoch, HeldBack(image.offset))

    def taken(self, sessions: Sessions) -> tuple[int, Outdated] | None:
        """The broker whose session was changed, in the controller's last step, by a heartbeat of an
        earlier life."""
        if self._stale is None:
            return None
        (broker, stale, before), self._stale = self._stale, None
        return None if sessions.get(broker) == before else (broker, stale)

    def registered(
        self, brokers: Mapping[int, BrokerRegistration], timeout_ms: int, now_ms: int
    ) -> Iterator[tuple[int, RegisteredEarly]]:
        """The brokers whose new process the controller has registered, in its last step, within the
        session of the previous process."""
        before, self._registered = self._registered, dict(brokers)
        for broker, new in brokers.items():
            old = before.get(broker, new)
            heartbeat = self._newest.get((broker, old.epoch))
            if (
                new.epoch != old.epoch
                and new.incarnation_id != old.incarnation_id
                and heartbeat is not None
                and now_ms < heartbeat[0] + timeout_ms
            ):
                yield broker, RegisteredEarly(heartbeat[0], now_ms, timeout_ms)

    def on_answer(self, broker: int, number: int, answer: PeerResponse) -> HeldBack | None:
        """What is wrong with the answer to a heartbeat that arrives at its broker; None if nothing.
        `number`: the id that was recorded when the heartbeat arrived."""
        due = self._due.get(broker)
        if due is None or due[0] != number:
            return None
        del self._due[broker]
        body: m.BrokerHeartbeatResponse = answer.body
        if body.error_code or body.should_shut_down:
            return None
        _, epoch, held_back = due
        self._found.add(("held back", broker, epoch))
        return held_back

    def look(
        self, now_ms: int, image: MetadataImage | None, timeout_ms: int
    ) -> Iterator[tuple[int, Silent]]:
        """The brokers that are not fenced although they were silent for longer than a session
        lasts, now and at the last look.  `image`: None while no controller runs."""
        if image is None:
            self._active_since_ms = -1
            self._silent = {}
            return
        if self._active_since_ms < 0:
            self._active_since_ms = now_ms
        before, self._silent = self._silent, {}
        for broker, known in image.brokers.items():
            if known.fenced:
                continue
            heartbeat_ms, _ = self._newest.get((broker, known.epoch), (-1, -1))
            since_ms = max(heartbeat_ms, self._active_since_ms)
            if now_ms - since_ms <= timeout_ms:
                continue
            self._silent[broker] = since_ms
            place = ("silent", broker, known.epoch)
            if before.get(broker) == since_ms and place not in self._found:
                self._found.add(place)
                yield broker, Silent(since_ms, now_ms)

    def _all_know(self, image: MetadataImage) -> bool:
        """Whether every active broker has told the controller that it knows the newest metadata."""
        return all(
            self._newest.get((one.broker_id, one.epoch), (-1, -1))[1] >= image.offset
            for one in image.brokers.values()
            if one.is_active or (not one.fenced and (one.broker_id, one.epoch) not in self._asked)
        )


def unfenced_by(image: MetadataImage, broker: int, epoch: int) -> StoppedUnfenced | None:
    """What is wrong with a controller's metadata once a broker, in this broker epoch, has been told
    to shut down; None if the broker is fenced, or has registered again."""
    known = image.brokers.get(broker)
    is_its = known is not None and known.epoch == epoch and not known.fenced
    return StoppedUnfenced(epoch) if is_its else None


def _is_needed(broker: int, image: MetadataImage) -> bool:
    """Whether a broker leads a partition, or is in an ISR that it leaves later."""
    return any(
        partition.leader == broker or broker in partition.isr
        for topic in image.topics.values()
        for partition in topic.partitions
    )
