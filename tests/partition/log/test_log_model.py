"""A log compared with a plain list through random histories."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.log import Log
from kcluster.partition.log.retention import expire
from kcluster.partition.producers import NO_STATE, ProducerState, advance
from kcluster.protocol.records.records import Batch
from tests.partition.records_for_tests import EVERYTHING, NOW_MS, append, new_log, sent

SMALL = TopicConfig(internal_segment_bytes=250)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3), st.integers(1, 2)),
        st.tuples(st.just("truncate"), st.integers(0, 6), st.just(0)),
        st.tuples(st.just("start"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("clean"), st.integers(0, 4), st.just(0)),
    ),
    max_size=25,
)


def producers_of(batches: list[Batch]) -> dict[int, ProducerState]:
    states: dict[int, ProducerState] = {}
    for batch in batches:
        states[batch.producer_id] = advance(states.get(batch.producer_id, NO_STATE), batch)
    return states


class Model:
    """The retained batches in a plain list."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.start = self.end = 0

    def truncate(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.last_offset < offset]
        if offset <= self.start:
            self.batches, self.start, self.end = [], offset, offset
        elif self.end > offset:
            self.end = max(self.start, self.batches[-1].last_offset + 1 if self.batches else 0)

    def read(self, offset: int, end_offset: int) -> list[Batch]:
        return [
            batch
            for batch in self.batches
            if batch.last_offset >= offset and batch.last_offset < end_offset
        ]


def check(log: Log, model: Model) -> None:
    assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
    assert log.log_start_offset <= log.flushed_offset <= log.log_end_offset
    retained = log.batches_from(model.start)
    assert retained == model.read(model.start, EVERYTHING)
    for offset in range(model.start, model.end + 1):
        for end_offset in (model.end, (model.start + model.end) // 2):
            expected = [] if offset >= end_offset else model.read(offset, end_offset)
            assert log.read(offset, EVERYTHING, end_offset) == expected
    epochs = [epoch for epoch, _ in log.epochs.entries]
    assert epochs == sorted(epochs)
    for batch in retained:
        offset = max(batch.base_offset, model.start)
        assert log.epochs.epoch_for_offset(offset) == batch.leader_epoch
    known = log.producers.states
    for producer_id, state in producers_of(retained).items():
        assert known[producer_id].next_sequence == state.next_sequence
        assert known[producer_id].batches[-1] == state.batches[-1]


@given(STEPS)
@settings(max_examples=150)
def test_log__behaves_like_a_plain_list(steps: list[tuple[str, int, int]]) -> None:
    log, model, epoch = new_log(), Model(), 0
    for what, number, producer_id in steps:
        if what == "append":
            state = log.producers.states.get(producer_id, NO_STATE)
            data = sent(
                number, producer_id=producer_id, producer_epoch=0, base_sequence=state.next_sequence
            )
            model.batches += append(log, data, epoch=epoch, config=SMALL)
            model.end = log.log_end_offset
        elif what == "truncate":
            offset = max(model.end - number, 0)
            log.truncate_to(offset)
            if offset < model.end:
                model.truncate(offset)
            epoch += 1
        elif what == "start":
            offset = min(model.start + number, model.end)
            log.advance_log_start_offset(offset)
            model.start = max(model.start, offset)
        else:
            expire(log, NOW_MS, SMALL, model.end)
            model.batches = (
                [
                    batch
                    for batch in model.batches
                    if batch.base_offset >= log.segments[0].base_offset
                ]
                if log.segments
                else model.batches
            )
        check(log, model)
