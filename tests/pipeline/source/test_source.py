"""The source without Spark and without a broker: options, offsets, plans, losses, columns."""

from __future__ import annotations

import random
from importlib.util import find_spec

import pytest

from kcluster.pipeline.source.columns import Columns, record_positions
from kcluster.pipeline.source.errors import OptionError
from kcluster.pipeline.source.losses import Decision, LogNow, Lost, Wanted, decide
from kcluster.pipeline.source.offsets import Mark, from_json, to_json
from kcluster.pipeline.source.options import read_settings, write_settings
from kcluster.pipeline.source.planning import Range, limited, split
from kcluster.protocol.records.batches import InvalidRecords, parse_batches
from kcluster.protocol.records.compression import CODEC_NAMES
from kcluster.protocol.records.records import Record, build_batch, read_records

pytestmark = pytest.mark.skipif(
    find_spec("pyarrow") is None, reason="the extra spark is not installed"
)
SERVERS = {"kafka.bootstrap.servers": "a:1,[::1]:2"}
SUBSCRIBED = {**SERVERS, "subscribe": "orders"}
ID = "ac71906eeecb4d1c97a514fecca56f4f"


# ------------------------------------------------------------------------------------ options


def test_options__are_read_as_the_connector_reads_them() -> None:
    read = read_settings(
        {
            **SUBSCRIBED,
            "KAFKA.isolation.LEVEL": "read_committed",
            "maxoffsetspertrigger": "9",
            "startingOffsets": '{"orders": {"0": 5, "1": -2}}',
            "maxTriggerDelay": "2m",
            "kafka.group.id": "g",
            "failOnDataLoss": "FALSE",
        },
        is_stream=True,
    )
    assert read.client.bootstrap == (("a", 1), ("::1", 2))
    assert (read.topics, read.is_read_committed, read.max_offsets) == (("orders",), True, 9)
    assert (read.starting.each, read.ending.word) == ({"orders": {0: 5, 1: -2}}, "latest")
    assert (read.fail_on_data_loss, read.max_delay_ms) == (False, 120_000)
    assert read_settings(SUBSCRIBED, is_stream=True).starting.word == "latest"
    assert read_settings(SUBSCRIBED, is_stream=False).starting.word == "earliest"
    assert write_settings({**SERVERS, "kafka.acks": "1"}).is_idempotent is False


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribe": "a"}, "option kafka.bootstrap.servers is missing"),
        ({**SUBSCRIBED, "startingOfset": "latest"}, "no such option; did you mean startingOffsets"),
        ({**SUBSCRIBED, "kafka.fetch.max.byte": "1"}, "did you mean kafka.fetch.max.bytes"),
        ({**SUBSCRIBED, "kafka.auto.offset.reset": "earliest"}, "use startingOffsets"),
        ({**SUBSCRIBED, "kafka.ssl.truststore.location": "x"}, "plaintext only; use format kafka"),
        ({**SUBSCRIBED, "kafka.isolation.level": "read_comitted"}, "did you mean read_committed"),
        ({**SUBSCRIBED, "maxOffsetsPerTrigger": "0"}, "a number of at least 1, not '0'"),
        ({**SUBSCRIBED, "minPartitions": "two"}, "a number of at least 1, not 'two'"),
        ({**SUBSCRIBED, "failOnDataLoss": "no"}, "failOnDataLoss must be true or false, not 'no'"),
        ({**SUBSCRIBED, "assign": '{"a": [0]}'}, "not subscribe and assign"),
        (SERVERS, "must be set: none is given"),
        ({**SERVERS, "subscribe": "a b"}, "a name has letters"),
        ({**SERVERS, "subscribePattern": "a("}, "subscribePattern: missing"),
        ({**SERVERS, "assign": '{"a": 0}'}, "partitions are numbers"),
        (
            {**SUBSCRIBED, "startingOffsets": "earlist"},
            "must be earliest, latest or JSON, not 'earlist'",
        ),
        ({**SUBSCRIBED, "startingOffsets": '{"a": {"x": 1}}'}, "'x' is not a partition"),
        ({**SUBSCRIBED, "startingOffsets": '{"a": {"0": -3}}'}, "a-0: -3 is not allowed"),
        ({**SUBSCRIBED, "startingOffsets": "{"}, "startingOffsets: not JSON"),
        ({**SUBSCRIBED, "topic": "a"}, "option topic is not an option of read"),
        ({**SUBSCRIBED, "kafka.bootstrap.servers": "a:0"}, "'a:0' is not host:port"),
    ],
)
def test_options__invalid_ones_are_reported_in_one_line(
    options: dict[str, str], reason: str
) -> None:
    with pytest.raises(OptionError) as raised:
        read_settings(options, is_stream=True)
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


def test_options__of_a_batch_read() -> None:
    for options, reason in (
        ({"startingOffsets": "latest"}, "cannot be latest in a batch"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        (
            {"startingOffsets": '{"orders": {"0": -1}}'},
            "startingOffsets: orders-0: -1 is not allowed",
        ),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "endingOffsets: orders-0: -2 is not allowed"),
    ):
        with pytest.raises(OptionError, match=reason):
            read_settings({**SUBSCRIBED, **options}, is_stream=False)
    # As in the connector: ignored in a batch read, not an error.
    assert read_settings({**SUBSCRIBED, "maxOffsetsPerTrigger": "5"}, False).max_offsets is None


# ------------------------------------------------------------------------------ offsets, plans


def test_offsets__a_position_survives_a_round_trip_and_the_connectors_is_read_too() -> None:
    marks = {("a", 0): Mark(23, 4, ID), ("a", 11): Mark(5, -1, ID), ("b", 2): Mark(7)}
    position = to_json(marks)
    assert from_json(position) == marks
    assert (position["a"], position["a:epoch"]) == ({"0": 23, "11": 5}, {"0": 4})
    assert all(-(1 << 63) <= half < 1 << 63 for half in position["a:id"].values())
    assert from_json({"a": {"0": 23}}) == {("a", 0): Mark(23)}


def test_planning__a_limit_is_shared_in_proportion_to_the_records_of_a_partition() -> None:
    starts = {("a", 0): 0, ("a", 1): 100, ("a", 2): 5}
    ends = {("a", 0): 900, ("a", 1): 200, ("a", 2): 5}
    assert limited(starts, ends, 100) == {("a", 0): 90, ("a", 1): 110, ("a", 2): 5}
    assert limited(starts, ends, 5_000) == ends
    # No partition starves.
    assert limited(starts, ends, 1) == {("a", 0): 1, ("a", 1): 101, ("a", 2): 5}


def test_planning__large_ranges_are_split_into_the_requested_number() -> None:
    ranges = [Range("a", 0, 0, 900), Range("a", 1, 10, 20), Range("a", 2, 5, 5)]
    assert split(ranges) == ranges[:2]
    parts = split(ranges, min_partitions=4)
    assert [(one.partition, one.start, one.until) for one in parts] == [
        (0, 0, 300),
        (0, 300, 600),
        (0, 600, 900),
        (1, 10, 20),
    ]
    assert [one.size for one in split(ranges[:1], max_records=400)] == [300, 300, 300]


# ------------------------------------------------------------------------------------- losses


@pytest.mark.parametrize(
    ("wanted", "log", "start", "lost"),
    [
        ((23, 50), LogNow(0, 90), 23, []),
        ((23, 23), LogNow(23, 23), 23, []),
        ((23, 50), LogNow(40, 90), 40, [(23, 39, "begins at 40")]),
        ((23, 30), LogNow(40, 90), 40, [(23, 29, "begins at 40")]),
        ((40, 40), LogNow(60, 90), 60, []),
        ((23, None), LogNow(40, 90), 40, [(23, 39, "begins at 40")]),
        ((23, 50), LogNow(0, 30), 23, [(30, 49, "ends at 30")]),
        ((50, None), LogNow(0, 30), 30, [(30, 49, "ends at 30")]),
        ((50, 60), LogNow(0, 30), 30, [(30, 59, "ends at 30")]),
        ((23, 50), LogNow(30, 40), 30, [(23, 29, "begins at 30"), (40, 49, "ends at 40")]),
        ((23, 50), None, None, [(23, 49, "deleted")]),
        ((50, None), None, None, [(50, None, "deleted")]),
        ((50, 90, 3), LogNow(0, 90, epoch_end=50), 50, []),
        ((50, 90, 3), LogNow(0, 90, epoch_end=30), 30, [(30, 49, "where epoch 3 ends")]),
        ((50, 90, 3), LogNow(40, 90, epoch_end=30), 40, [(30, 49, "where epoch 3 ends")]),
        ((50, 90, 3, ID), LogNow(0, 90, ID), 50, []),
        ((50, None, 3, ID), LogNow(2, 90, "b"), 2, [(50, None, "created again, its id is b")]),
        ((50, 60, 3, ID), LogNow(0, 90, "b"), 0, [(50, 59, "created again")]),
    ],
)
def test_losses__are_exact_ranges(
    wanted: tuple[int, int], log: LogNow | None, start: int | None, lost: list[tuple[int, int, str]]
) -> None:
    decision = decide(Wanted("orders", 0, *wanted), log)
    assert decision.start == start
    assert [(one.first, one.last) for one in decision.lost] == [one[:2] for one in lost]
    for one, (_, _, why) in zip(decision.lost, lost, strict=True):
        assert why in one.why


def test_losses__are_reported_in_one_line() -> None:
    assert decide(Wanted("a", 1, 5, 9), LogNow(0, 9)) == Decision(5)
    assert str(Lost("a", 1, 5, 8, "why")) == "a-1: offsets 5..8 are lost: why"
    assert str(Lost("a", 1, 5, None, "why")) == "a-1: offsets from 5 on are lost: why"


# ------------------------------------------------------------------------------------ columns


def records_of(rng: random.Random, count: int) -> list[Record]:
    def some(limit: int) -> bytes | None:
        return None if rng.random() < 0.1 else rng.randbytes(rng.randrange(limit))

    return [
        Record(
            0,
            1_700_000_000_000 + rng.randrange(-5, 1 << 30),
            some(20),
            some(20_000 if rng.random() < 0.01 else 200),
            tuple((f"h{n}é", some(9)) for n in range(rng.choice([0, 0, 1, 3]))),
        )
        for _ in range(count)
    ]


def batches_of(rng: random.Random, codec: str) -> bytes:
    made, offset = b"", 7
    for count in (1, 300, 3):
        records = records_of(rng, count)
        kind = rng.randrange(2)
        made += build_batch(
            records, base_offset=offset, compression=codec, leader_epoch=2, timestamp_type=kind
        )
        offset += count
    return made


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_columns__equal_the_records(codec: str) -> None:
    batches = parse_batches(batches_of(random.Random(codec), codec))
    records = [(record, one.timestamp_type) for one in batches for record in read_records(one)]
    columns = Columns("orders", 3, include_headers=True, check_crcs=True)
    for start, until in ((0, 1 << 40), (9, 250), (7, 8), (309, 310)):
        made = columns.of(batches, start, until)
        expected = [
            {
                "key": record.key,
                "value": record.value,
                "topic": "orders",
                "partition": 3,
                "offset": record.offset,
                "timestamp": record.timestamp * 1_000,
                "timestampType": kind,
                "headers": [{"key": k, "value": v} for k, v in record.headers] or None,
            }
            for record, kind in records
            if start <= record.offset < until
        ]
        assert made is not None
        made.validate(full=True)
        at = made.schema.get_field_index("timestamp")
        plain = made.set_column(at, "timestamp", made.column(at).cast("int64"))
        assert plain.to_pylist() == expected
    assert columns.of(batches, 311, 400) is None


def test_columns__corrupt_bytes_are_refused_without_a_crash() -> None:
    rng = random.Random(5)
    whole = batches_of(rng, "none")
    unchecked = Columns("orders", 0, include_headers=True, check_crcs=False)
    checked = Columns("orders", 0, include_headers=True, check_crcs=True)
    refused = 0
    for _ in range(300):
        broken = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(61, len(broken))] = rng.randrange(256)
        try:
            batches = parse_batches(broken)
            unchecked.of(batches, 0, 1 << 40)
        except InvalidRecords:
            refused += 1
            continue
        if bytes(broken) != whole:
            with pytest.raises(InvalidRecords):
                checked.of(batches, 0, 1 << 40)
    assert refused > 20


def test_columns__record_lengths_of_any_size() -> None:
    big = build_batch(
        [Record(0, 0, None, bytes(size)) for size in (0, 50, 60, 8_180, 8_190, 1 << 21)]
    )
    data = bytes(big[61:])
    positions = record_positions(data, 6)
    assert len({data[at] for at in positions}) > 1
    with pytest.raises(InvalidRecords, match="off the declared 5 records"):
        record_positions(data, 5)
    with pytest.raises(IndexError):
        record_positions(data, 7)
