"""The difference that other values of parameters make to a past: its facts, and one sentence.

Owns: ParameterDifference, and the sentence.  Never: plays a past (play/past.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.events.words.base import counted
from kcluster.scenario.difference import InBoth, joined, records_words, seconds
from kcluster.scenario.gaps import Gap
from kcluster.scenario.parameters import LATENCY, Values
from kcluster.scenario.play.past import PlayedPast

LEAST_GAP_MS: Final = 100
LEAST_ACK_MS: Final = 5
LEAST_WAIT_MS: Final = 100
SAME_LOSS_MS: Final = 1_000
"""The greatest distance of two losses of a leader that are one loss."""


class ParameterDifference(Struct, frozen=True):
    """A past as it was, and with other values.  `here`: with the values that it had; `there`: with
    the others, `values`.  `gaps`: the last gap here, and the gap there of the same loss; None:
    there is none."""

    topic: str
    partition: int
    values: Values
    here: PlayedPast
    there: PlayedPast
    gaps: tuple[Gap | None, Gap | None]

    @property
    def text(self) -> str:
        """The difference in one sentence."""
        return _sentence(self)


def parameter_difference(
    partition: Partition, values: Values, here: PlayedPast, there: PlayedPast
) -> ParameterDifference:
    """The difference between two pasts of a partition."""
    return ParameterDifference(*partition, values, here, there, _same_gaps(here, there))


def _same_gaps(here: PlayedPast, there: PlayedPast) -> tuple[Gap | None, Gap | None]:
    if here.gap is None:
        return None, there.gap
    from_ms = here.gap.from_ms
    same = (gap for gap in there.gaps if abs(gap.from_ms - from_ms) <= SAME_LOSS_MS)
    return here.gap, next(same, None)


# ------------------------------------------------------------------------------------ the words


def _sentence(found: ParameterDifference) -> str:
    parts = [*_of_gaps(found), *_of_records(found), *_of_acks(found)]
    if not parts:
        parts = ["clients notice no difference"]
    elif found.there.lost == found.here.lost > 0:
        parts.append("no further records are lost")
    elif found.there.lost == 0:
        before = counted(found.here.lost, "acknowledged record")
        parts.append("nothing is lost" + f" instead of {before}" * (found.here.lost > 0))
    *first, last = parts
    text = f"{', '.join(first)}, and {last}" if first else last
    return f"With {joined(list(_value_words(found.values)))}, {text}."


def _value_words(values: Values) -> Iterator[str]:
    for name, value in values.items():
        yield f"a latency of {value} ms" if name == LATENCY else f"{name}={value}"


def _of_gaps(found: ParameterDifference) -> Iterator[str]:
    here, there = found.gaps
    name = f"{found.topic}-{found.partition}"
    before = "" if here is None else f" instead of {_gap_words(here, found.here)}"
    if there is None:
        if here is not None:
            yield f"the loss of broker {here.leader} stops no write to {name}"
    elif here is None or _is_other(here, there):
        yield f"no client can write to {name} for {_gap_words(there, found.there)}{before}"


def _is_other(here: Gap, there: Gap) -> bool:
    was_ms, is_ms = here.duration_ms, there.duration_ms
    if was_ms is None or is_ms is None:
        return was_ms != is_ms
    return abs(is_ms - was_ms) >= LEAST_GAP_MS


def _gap_words(gap: Gap, past: PlayedPast) -> str:
    if gap.duration_ms is None:
        return f"more than {seconds(past.until_ms - gap.from_ms)}"
    return seconds(gap.duration_ms)


def _of_records(found: ParameterDifference) -> Iterator[str]:
    here, there = found.here, found.there
    return records_words(
        lost=InBoth(here.lost, there.lost),
        duplicated=InBoth(here.duplicated, there.duplicated),
        failed=InBoth(here.failed, there.failed),
    )


def _of_acks(found: ParameterDifference) -> Iterator[str]:
    here, there = found.here, found.there
    if there.ack_ms is None:
        if here.ack_ms is not None:
            yield "producers get no acks"
    elif here.ack_ms is not None and abs(there.ack_ms - here.ack_ms) >= LEAST_ACK_MS:
        yield f"an ack takes {seconds(there.ack_ms)} instead of {seconds(here.ack_ms)}"
    is_said = next(_of_gaps(found), None) is not None or there.ack_ms is None
    longest = here.longest_wait_ms, there.longest_wait_ms
    if not is_said and abs(longest[1] - longest[0]) >= LEAST_WAIT_MS:
        yield f"a record waits up to {seconds(longest[1])} instead of {seconds(longest[0])}"
