"""State of a share partition that is still there after it was initialized again.

Owns: the confirmed initializations, what leaders have written since, and each state that a leader
reads with more than that.  Never: looks into a coordinator (shares.py knows what must be in it).
Kafka: ShareCoordinatorShard.initializeState; KIP-932.

    share-state-kept   an administrator has reset the offsets of a share group, or its state was
                       deleted, but a leader still reads the earlier state of records
    stale-share-write  a write is stored that names an earlier state epoch than the initialization
                       before it: its leader goes on with what it had read before

A write counts from its arrival on, whether it is stored or not.  A coordinator that has a successor
may answer with an older state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kcluster.contract import PeerRequest, PeerResponse
from kcluster.invariants.facts import Measure, Outdated
from kcluster.invariants.group_facts import StateKept
from kcluster.invariants.promises import BrokenPromise, forget_oldest
from kcluster.protocol import messages as m

MAX_WRITES: Final = 10_000
"""The number of ranges of one share partition that are remembered; of one with more, nothing is
said."""
_INITIALIZE: Final = m.InitializeShareGroupStateRequest
_WRITE: Final = m.WriteShareGroupStateRequest
_READ: Final = m.ReadShareGroupStateRequest
_DELETE: Final = m.DeleteShareGroupStateRequest
_INITIALIZED: Final = m.InitializeShareGroupStateResponse
_WRITTEN: Final = m.WriteShareGroupStateResponse
_NO_EPOCH: Final = -1
"""The state epoch of a request that is of no epoch."""

_ShareKey = tuple[str, bytes, int]
"""(group, topic id, partition)."""


class _StatesAsked(NamedTuple):
    """A request that is not answered yet.  `number`: counts the requests in order of arrival;
    `keys`: its share partitions; `epochs`: the state epochs of an initialization; `outdated`: the
    share partitions for which a write must be refused."""

    number: int
    keys: tuple[_ShareKey, ...]
    epochs: Mapping[_ShareKey, int]
    outdated: Mapping[_ShareKey, Outdated]


class Beginnings:
    """The newest initialization of each share partition's state."""

    def __init__(self) -> None:
        self._number = 0
        self._asked: dict[tuple[int, int], _StatesAsked] = {}
        """By node and id."""
        self._written: dict[_ShareKey, list[tuple[int, int, int]]] = {}
        """(number of the request, first offset, last offset) of each range in writes."""
        self._begun: dict[_ShareKey, tuple[int, int]] = {}
        """(number of the request, number of the last request before its answer)."""
        self._epochs: dict[_ShareKey, int] = {}
        """The state epochs of these initializations."""
        self._ended: dict[_ShareKey, int] = {}
        """The number of the last request to delete a state, which may have been refused."""

    def forget(self) -> None:
        """Discard the initializations: the share coordinators' logs may have lost records."""
        self._asked = {}
        self._begun = {}
        self._epochs = {}

    def on_request(self, request: PeerRequest, newest: Iterable[_ShareKey]) -> None:
        """Record a request about states when it arrives at a coordinator.  `newest`: the share
        partitions in it of which that coordinator has no successor."""
        self._number += 1
        body = request.body
        if isinstance(body, _INITIALIZE | _READ | _WRITE):
            keys = tuple(newest)
            epochs = {} if isinstance(body, _READ) else _epochs_in(body)
            is_write = isinstance(body, _WRITE)
            outdated = self._outdated(keys, epochs) if is_write else {}
            asked = _StatesAsked(self._number, keys, epochs, outdated)
            self._asked[request.source, request.request_id] = asked
            forget_oldest(self._asked)
        if isinstance(body, _DELETE):
            self._end(body)
        elif isinstance(body, _WRITE):
            for topic in body.topics:
                for row in topic.partitions:
                    written = self._written.setdefault(
                        (body.group_id, topic.topic_id, row.partition), []
                    )
                    written += (
                        (self._number, one.first_offset, one.last_offset)
                        for one in row.state_batches
                    )
            forget_oldest(self._written)

    def _end(self, body: m.DeleteShareGroupStateRequest) -> None:
        """Record a request to delete states: their epochs may begin again."""
        for topic in body.topics:
            for row in topic.partitions:
                key = (body.group_id, topic.topic_id, row.partition)
                self._ended[key] = self._number
                self._epochs.pop(key, None)
        forget_oldest(self._ended)

    def on_answer(self, node: int, number: int, answer: PeerResponse) -> Iterator[BrokenPromise]:
        """What a coordinator's answer breaks when it arrives at a node.  `number`: the id that was
        recorded when the request arrived."""
        asked = self._asked.pop((node, number), None)
        if asked is None:
            return
        keys = {(key[1], key[2]): key for key in asked.keys}
        for topic in answer.body.results:
            for row in topic.partitions:
                key = keys.get((topic.topic_id, row.partition))
                if row.error_code or key is None:
                    continue
                if isinstance(answer.body, _INITIALIZED):
                    self._begin(key, asked)
                elif isinstance(answer.body, _WRITTEN):
                    if key in asked.outdated:
                        yield "stale-share-write", _subject(key), asked.outdated[key]
                else:
                    yield from self._read(key, asked.number, row)

    def _outdated(
        self, keys: Iterable[_ShareKey], epochs: Mapping[_ShareKey, int]
    ) -> dict[_ShareKey, Outdated]:
        """The share partitions in a write that were initialized with a later state epoch."""
        found = {}
        for key in keys:
            epoch, newest = epochs[key], self._epochs.get(key, _NO_EPOCH)
            if _NO_EPOCH < epoch < newest:
                found[key] = Outdated(Measure.STATE_EPOCH, epoch, newest)
        return found

    def _begin(self, key: _ShareKey, asked: _StatesAsked) -> None:
        number = asked.number
        if number > self._begun.get(key, (-1, -1))[0]:
            self._begun[key] = (number, self._number)
            forget_oldest(self._begun)
            self._written[key] = [one for one in self._written.get(key, ()) if one[0] > number]
            if number > self._ended.get(key, -1):
                self._epochs[key] = asked.epochs[key]
                forget_oldest(self._epochs)

    def _read(
        self, key: _ShareKey, asked: int, row: m.ReadShareGroupStateResponse.PartitionResult
    ) -> Iterator[BrokenPromise]:
        begun = self._begun.get(key)
        written = self._written.get(key, [])
        if begun is None or asked <= begun[1] or len(written) > MAX_WRITES:
            return
        known = _merged((first, last) for number, first, last in written if number > begun[0])
        for batch in row.state_batches:
            first, last = batch.first_offset, batch.last_offset
            if not any(low <= first and last <= high for low, high in known):
                yield "share-state-kept", _subject(key), StateKept(first, last)
                return


def _epochs_in(
    body: m.InitializeShareGroupStateRequest | m.WriteShareGroupStateRequest,
) -> dict[_ShareKey, int]:
    return {
        (body.group_id, topic.topic_id, row.partition): row.state_epoch
        for topic in body.topics
        for row in topic.partitions
    }


def _subject(key: _ShareKey) -> str:
    return f"group {key[0]}, partition {key[2]}"


def _merged(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges of offsets, with overlapping and adjacent ranges merged."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found
