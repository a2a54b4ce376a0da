from __future__ import annotations

import pytest

from kcluster.pipeline.ingest.losses import (
    IngestBatch,
    Known,
    KnownPartition,
    KnownTopic,
    PartitionNow,
    TopicNow,
    View,
    find_losses,
    learn,
    learn_ends,
    losses_at_rest,
)

REMOVED = "the log begins at 70 now: removed by retention or DeleteRecords"
AGAIN = "the topic was deleted and created again, its id is B now"


def view(start: int, end: int, topic_id: str = "A", epoch: int = 4, epoch_end: int = -1) -> View:
    return {"orders": TopicNow(topic_id, {0: PartitionNow(start, end, epoch, epoch_end)})}


def known(end: int, topic_id: str = "A", gone: bool = False) -> Known:
    return {"orders": KnownTopic(topic_id, {0: KnownPartition(4, end)}, gone)}


def lost(
    span: tuple[int, int],
    before: View,
    after: View,
    was: Known,
    unread: tuple[tuple[int, int], ...] = (),
) -> list[tuple[int, int | None, str]]:
    """`unread`: the ranges of the batch that were not read.  Asking beyond the batch fails."""
    batch = IngestBatch({"orders": {0: span[0]}}, {"orders": {0: span[1]}}, before, after)

    def gaps(topic: str, partition: int, first: int, last: int) -> list[tuple[int, int]]:
        assert (topic, partition) == ("orders", 0)
        assert span[0] <= first <= last < span[1]
        cut = [(max(a, first), min(b, last)) for a, b in unread]
        return [(a, b) for a, b in cut if a <= b]

    return [(x.first, x.last, x.why) for x in find_losses(batch, was, gaps)]


@pytest.mark.parametrize(
    ("span", "first", "now", "unread", "expected"),
    [
        ((50, 100), view(0, 100), view(0, 100), ((60, 61), (99, 99)), []),
        ((50, 100), view(0, 100), view(50, 100), ((60, 61),), []),
        ((50, 100), view(70, 100), view(70, 100), ((50, 69), (80, 80)), [(50, 69, REMOVED)]),
        ((50, 60), view(70, 100), view(70, 100), ((50, 59),), [(50, 59, REMOVED)]),
        # The log start moved during the read: lost is what lies below it and was not read.
        ((50, 100), view(0, 100), view(70, 100), ((55, 69),), [(55, 69, REMOVED)]),
        ((50, 100), view(0, 100), view(70, 100), (), []),
        ((50, 100), view(60, 100), view(70, 100), ((50, 61),), [(50, 61, REMOVED)]),
        (
            (50, 100),
            view(60, 100),
            view(70, 100),
            ((50, 59), (65, 66)),
            [(50, 59, REMOVED), (65, 66, REMOVED)],
        ),
    ],
    ids=["gaps", "gaps_at_start", "below", "all", "midway", "read_in_time", "both", "two_ranges"],
)
def test_ranges__unread_offsets_below_the_log_start_are_lost(
    span: tuple[int, int],
    first: View,
    now: View,
    unread: tuple[tuple[int, int], ...],
    expected: list[tuple[int, int, str]],
) -> None:
    assert lost(span, first, now, known(100), unread) == expected


def test_ranges__a_recreated_topic_lost_its_rest_and_the_skipped_offsets() -> None:
    shorter = lost((50, 30), view(0, 30, "B"), view(0, 30, "B"), known(80))
    text = "; the source continued at 30 and skipped these offsets of the new topic"
    assert shorter == [(50, 79, AGAIN), (0, 29, AGAIN + text)]
    longer = lost((50, 90), view(0, 90, "B"), view(0, 90, "B"), known(50))
    text = "; the source continued at 50 and skipped these offsets of the new topic"
    assert longer == [(50, None, AGAIN), (0, 49, AGAIN + text)]
    # The deletion was reported before; a source restarts with the new topic.
    assert lost((0, 20), view(0, 20, "B"), view(0, 20, "B"), known(50, gone=True)) == []


def test_ranges__a_truncated_log_lost_the_end_that_was_already_read() -> None:
    cut = view(0, 60, epoch=5, epoch_end=40)
    reason = "the log was truncated to 40, where epoch 4 ends now"
    assert lost((50, 60), cut, cut, known(50)) == [(40, 49, reason)]
    short = view(0, 40, epoch=5)
    assert lost((50, 40), short, short, known(50)) == [(40, 49, "the log was truncated to 40")]
    later = view(0, 60, epoch=5, epoch_end=50)
    assert lost((50, 60), later, later, known(50)) == []


def test_ranges__a_deleted_topic_lost_its_unread_offsets() -> None:
    gone: View = {}
    assert lost((50, 80), view(0, 80), gone, known(80), ((60, 79),)) == [
        (60, 79, "the partition was deleted")
    ]
    assert lost((50, 80), view(0, 80), gone, known(90)) == [(80, 89, "the partition was deleted")]
    assert lost((50, 80), view(0, 80), gone, known(80)) == [(80, None, "the partition was deleted")]
    assert lost((50, 80), view(0, 80), gone, known(80, gone=True)) == []


def test_ranges__losses_without_a_batch_are_reported_at_rest_and_once() -> None:
    positions = {"orders": {0: 50}}
    was = known(60)
    (deleted,) = losses_at_rest(positions, was, {})
    assert (deleted.first, deleted.last) == (50, 59)
    assert losses_at_rest(positions, was, {}) == []
    # Recreated, and exactly as long as the position in the old one: there is no batch.
    was = known(50)
    assert losses_at_rest(positions, was, view(0, 49, "B")) == []
    found = losses_at_rest(positions, was, view(0, 50, "B"))
    assert [(x.first, x.last) for x in found] == [(50, None), (0, 49)]
    assert losses_at_rest(positions, was, view(0, 50, "B")) == []
    was = known(50)
    (cut,) = losses_at_rest(positions, was, view(0, 50, epoch=5, epoch_end=45))
    assert (cut.first, cut.last) == (45, 49)
    assert was["orders"].partitions[0].epoch == 5


def test_ranges__the_known_state_follows_the_topic() -> None:
    was: Known = {}
    learn(was, view(0, 50), ("orders", "payments"))
    learn_ends(was, view(0, 70))
    learn_ends(was, view(0, 90, "B"))
    assert was == known(70)
    learn(was, {}, ("orders",))
    assert was["orders"].gone
    learn(was, view(0, 5, "B"), ("orders",))
    assert was == known(5, "B")
