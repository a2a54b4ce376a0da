"""Leader-epoch cache: at which offset each leader epoch started in a log.

Owns: the (epoch, start offset) pairs of one log.  Never: truncates the log: the broker's fetcher
asks `end_offset_for` and decides.  Kafka: LeaderEpochFileCache; KIP-101, KIP-279, KIP-320.

Epochs and starts both strictly increase.  They change once per change of leader, and most logs have
one epoch or none: they are tuples, so that an empty cache costs nothing.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1


class EpochCache:
    """The epochs of one log.  `latest`: the newest epoch; UNDEFINED_EPOCH if there is none."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self) -> None:
        self.latest = UNDEFINED_EPOCH
        self._epochs: tuple[int, ...] = ()
        self._starts: tuple[int, ...] = ()

    @property
    def entries(self) -> list[tuple[int, int]]:
        """(epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def starts(self) -> tuple[int, ...]:
        """The start offsets, oldest first; a new tuple after each change of an entry."""
        return self._starts

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` starts at `start_offset`; True if that was not known.

        Entries with this or a later epoch, or with this or a later start, belong to truncated
        records and are dropped.
        """
        assert epoch >= 0, epoch
        assert start_offset >= 0, start_offset
        if epoch == self.latest and start_offset >= self._starts[-1]:
            return False
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        self._set((*self._epochs[:keep], epoch), (*self._starts[:keep], start_offset))
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (greatest known epoch <= `epoch`, offset at which it ended, exclusive).

        The newest epoch ends at `log_end_offset`.  For an epoch older than all known epochs: that
        epoch and the start of the oldest known epoch, because earlier records are deleted.  For an
        epoch newer than all known ones, or if none is known: (UNDEFINED_EPOCH,
        UNDEFINED_EPOCH_OFFSET).
        """
        if epoch == self.latest:
            if epoch == UNDEFINED_EPOCH:
                return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
            return epoch, log_end_offset
        if epoch < 0 or epoch > self.latest:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        higher = bisect_right(self._epochs, epoch)
        end_offset = self._starts[higher]
        return (self._epochs[higher - 1] if higher else epoch), end_offset

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch in which the record at `offset` was written, UNDEFINED_EPOCH if unknown."""
        index = bisect_right(self._starts, offset)
        return self._epochs[index - 1] if index else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that start at `end_offset` or later."""
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._starts):
            self._set(self._epochs[:keep], self._starts[:keep])

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended at `start_offset` or before; the epoch of `start_offset` then
        starts there."""
        index = bisect_right(self._starts, start_offset)
        if index > 1 or (index and self._starts[0] != start_offset):
            self._set(self._epochs[index - 1 :], (start_offset, *self._starts[index:]))

    def clear(self) -> None:
        self._set((), ())

    def _set(self, epochs: tuple[int, ...], starts: tuple[int, ...]) -> None:
        self._epochs, self._starts = epochs, starts
        self.latest = epochs[-1] if epochs else UNDEFINED_EPOCH
