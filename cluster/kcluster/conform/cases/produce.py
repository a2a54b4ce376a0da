"""Produce: the records that a leader appends or refuses.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from collections.abc import Callable
from struct import pack_into

from kcluster.conform.bodies import MakesBytes, batch, configured, produce
from kcluster.conform.case import Ask, Case, passed_on
from kcluster.conform.filling import Values
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records import compression
from kcluster.protocol.records.batches import HEADER_BYTES, LENGTH_END, seal
from kcluster.protocol.records.crc import crc32c_of

API = ApiKey.PRODUCE
SOME = "3,9,13"
"""Versions that differ: the oldest, the first flexible one, the newest."""

HOUR_MS = 3_600_000


def fresh(records: object = None, **more: object) -> JsonObject:
    return produce("{fresh}", "{fresh_id}", records, **passed_on(more))


def sent(*bodies: JsonObject) -> tuple[Ask, ...]:
    return tuple(Ask(API, body) for body in bodies)


def damaged(at: int, layout: str, value: int, fix_crc: bool = True, **more: object) -> MakesBytes:
    """A batch with another value at one place."""
    make = batch(**passed_on(more))

    def damage(values: Values) -> bytes:
        data = bytearray(make(values))
        pack_into(layout, data, at, value)
        if fix_crc:
            pack_into(">I", data, 17, crc32c_of(bytes(data[21:])))
        return bytes(data)

    return damage


def changed(change: Callable[[bytes], bytes], **more: object) -> MakesBytes:
    make = batch(**passed_on(more))
    return lambda values: change(make(values))


def records(
    *made: bytes, codec: str = "none", claims: str | None = None, count: int = 3, **more: object
) -> MakesBytes:
    """A batch that says it has `count` records, with these bytes as its records, compressed with
    `codec`; `claims`: the codec in its header, if it lies."""
    header = batch(count, **passed_on(more))

    def make(values: Values) -> bytes:
        payload = compression.compress(compression.CODEC_IDS[codec], b"".join(made))
        data = bytearray(header(values)[:HEADER_BYTES] + payload)
        pack_into(">i", data, 8, len(data) - LENGTH_END)
        pack_into(">h", data, 21, compression.CODEC_IDS[claims or codec])
        seal(data)
        return bytes(data)

    return make


def varint(value: int) -> bytes:
    out, encoded = bytearray(), (value << 1) ^ (value >> 63)
    while encoded > 0x7F:
        out.append(encoded & 0x7F | 0x80)
        encoded >>= 7
    return bytes((*out, encoded))


def record(
    offset: int,
    key: bytes = varint(1) + b"k",
    value: bytes = varint(1) + b"v",
    headers: bytes = varint(0),
    length: int | None = None,
    time: int = 0,
) -> bytes:
    """The bytes of a record, with a wrong length if one is given."""
    body = b"\0" + varint(time) + varint(offset) + key + value + headers
    return varint(len(body) if length is None else length) + body


FIRST, SECOND, THIRD = record(0), record(1), record(2)
WRONG_RECORDS: dict[str, tuple[bytes, ...]] = {
    "deltas out of order": (FIRST, THIRD, SECOND),
    "negative delta": (FIRST, record(-5), THIRD),
    "a record less": (FIRST, SECOND),
    "a record more": (FIRST, SECOND, THIRD, record(3)),
    "a byte behind": (FIRST, SECOND, THIRD, b"\0"),
    "the last byte missing": (FIRST, SECOND, THIRD[:-1]),
    "length too high": (FIRST, record(1, length=9), THIRD),
    "length too low": (FIRST, record(1, length=7), THIRD),
    "length negative": (FIRST, record(1, length=-1), THIRD),
    "length of gigabytes": (FIRST, record(1, length=2**31 - 1), THIRD),
    "length in five bytes": (FIRST, b"\x90\x80\x80\x80\x00" + SECOND[1:], THIRD),
    "delta in six bytes": (FIRST, varint(13) + b"\0\0\x82\x80\x80\x80\x80\x00" + SECOND[4:], THIRD),
    "key null": (FIRST, record(1, key=varint(-1)), THIRD),
    "key of length -2": (FIRST, record(1, key=varint(-2)), THIRD),
    "key too long": (FIRST, record(1, key=varint(900) + b"k"), THIRD),
    "value too long": (FIRST, record(1, value=varint(3) + b"v"), THIRD),
    "value too short": (FIRST, record(1, value=varint(1) + b"vvv"), THIRD),
    "header count -1": (FIRST, record(1, headers=varint(-1)), THIRD),
    "header count too high": (FIRST, record(1, headers=varint(1)), THIRD),
    "header count of millions": (FIRST, record(1, headers=varint(2**31 - 1)), THIRD),
    "header without a key": (FIRST, record(1, headers=b"\x02\x01\x01"), THIRD),
    "header key is no utf-8": (FIRST, record(1, headers=b"\x02\x02\xff\x01"), THIRD),
    "a time in the future": (FIRST, record(1, time=2 * HOUR_MS), THIRD),
    "a time that overflows": (FIRST, record(1, time=2**62), THIRD),
    "a time in the future, then a broken record": (
        record(0, time=2 * HOUR_MS),
        SECOND,
        record(2, length=3),
    ),
    "no bytes": (),
    "random bytes": (bytes(range(7, 107)),),
}
"""What is in a batch whose header and crc are right."""


def wrong_records(codec: str) -> tuple[Case, ...]:
    """Batches whose header and crc are right, and whose records are not."""
    cases = [
        Case(f"records, {codec}: {name}", API, fresh(records(*parts, codec=codec)), "13")
        for name, parts in WRONG_RECORDS.items()
    ]
    cases.append(
        Case(
            f"records, {codec}: 20 of random bytes",
            API,
            fresh(records(bytes(range(7, 107)), codec=codec, count=20)),
            "13",
        )
    )
    cases.append(
        Case(
            f"records, {codec}: no key in a compacted topic",
            API,
            fresh(records(FIRST, record(1, key=varint(-1)), THIRD, codec=codec)),
            "13",
            before=configured(cleanup_policy="compact"),
        )
    )
    cases.append(
        Case(
            f"records, {codec}: broken, from an idempotent producer",
            API,
            fresh(
                records(
                    FIRST,
                    SECOND,
                    codec=codec,
                    producer_id=PRODUCER,
                    producer_epoch=0,
                    base_sequence=9,
                )
            ),
            "13",
        )
    )
    return tuple(cases)


def wrong_payloads(codec: str) -> tuple[Case, ...]:
    """Batches that are not compressed as they say, or not only."""
    whole = record(0) + record(1) + record(2)
    packed = compression.compress(compression.CODEC_IDS[codec], whole)
    made = {"not compressed": whole, "half": packed[: len(packed) // 2], "empty": b""}
    return tuple(
        Case(f"payload, {codec}: {name}", API, fresh(records(payload, claims=codec)), "13")
        for name, payload in made.items()
    )


def of(producer_id: int, epoch: int, sequence: int, count: int = 1) -> JsonObject:
    """A batch of an idempotent producer."""
    more: JsonObject = {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "base_sequence": sequence,
    }
    return fresh(batch(count, **more))


def topics(*named: tuple[str, str, int]) -> JsonObject:
    """Several (name, id, partition) in one request."""
    data = [
        {"name": name, "topic_id": id_, "partition_data": [{"index": index, "records": batch()}]}
        for name, id_, index in named
    ]
    return {"acks": -1, "timeout_ms": 5_000, "topic_data": data}


FRESH_0, FRESH_1 = ("{fresh}", "{fresh_id}", 0), ("{fresh}", "{fresh_id}", 1)
PRODUCER = 990_000
NEXT = 990_001


def compressed(codec: str) -> tuple[Case, ...]:
    body = fresh(batch(3, value=b"x" * 100, compression=codec))
    return (Case(f"compressed with {codec}", API, body, "3,6-9,13"),)


CASES = (
    Case("one record", API, fresh()),
    Case("three records", API, fresh(batch(3))),
    Case("acks 1", API, fresh(acks=1), SOME),
    Case("acks 0", API, fresh(acks=0), SOME, answered=False),
    Case("acks 2", API, fresh(acks=2)),
    Case("acks -2", API, fresh(acks=-2), SOME),
    Case("acks 2 to an unknown topic", API, produce("{missing}", "{missing_id}", acks=2)),
    Case("acks 0 to an unknown topic", API, produce("{missing}", "{missing_id}", acks=0), "3-12",
         answered=False),
    Case("acks 0 to an unknown id", API, produce("{missing}", "{missing_id}", acks=0), "13",
         answered=False),
    Case("acks 0 to the wrong leader", API, fresh(acks=0), SOME, to=2, answered=False),
    Case("acks 0, bad crc", API, fresh(damaged(60, "B", 9, fix_crc=False), acks=0), SOME,
         answered=False),
    Case("unknown topic", API, produce("{missing}", "{missing_id}")),
    Case("invalid topic name", API, produce("a b", "{missing_id}"), "3-12"),
    Case("empty topic name", API, produce("", "{missing_id}"), "3-12"),
    Case("unknown partition", API, fresh(index=7)),
    Case("negative partition", API, fresh(index=-1), SOME),
    Case("id zero", API, produce("", bytes(16)), "13"),
    Case("wrong leader", API, fresh(), to=2),
    Case("not a replica leads it", API, fresh(index=1), to=3),
    Case("internal topic", API, produce("__consumer_offsets", "{missing_id}"), "3-12"),
    Case("internal topic by its own client", API,
         produce("__consumer_offsets", "{missing_id}", index=99), "9",
         client_id="__admin_client"),
    Case("timeout 0", API, fresh(timeout_ms=0, acks=1), SOME),
    Case("timeout -1", API, fresh(timeout_ms=-1, acks=1), SOME),
    Case("nothing", API, {"acks": -1, "timeout_ms": 100, "topic_data": []}),
    Case("nothing, acks 0", API, {"acks": 0, "timeout_ms": 100, "topic_data": []}, SOME,
         answered=False),
    Case("a partition twice in one topic", API, {"acks": -1, "timeout_ms": 5_000, "topic_data": [
        {"name": "{fresh}", "topic_id": "{fresh_id}", "partition_data": [
            {"index": 0, "records": batch()}, {"index": 0, "records": batch(2)}]}]}, SOME),
    Case("no partitions", API, {"acks": -1, "timeout_ms": 100, "topic_data": [
        {"name": "{topic}", "topic_id": "{topic_id}", "partition_data": []}]}, SOME),
    Case("two partitions, one elsewhere", API, topics(FRESH_0, FRESH_1)),
    Case("a partition twice", API, topics(FRESH_0, FRESH_0), SOME),
    Case("known and unknown", API, topics(FRESH_0, ("{missing}", "{missing_id}", 0)), SOME),

    Case("no records", API, fresh(lambda values: None), SOME),
    Case("no bytes", API, fresh(b""), SOME),
    Case("too few bytes", API, fresh(changed(lambda data: data[:30])), SOME),
    Case("half a batch", API, fresh(changed(lambda data: data[:-3])), SOME),
    Case("bytes behind the batch", API, fresh(changed(lambda data: data + b"xx")), SOME),
    Case("two batches", API, fresh(changed(lambda data: data + data)), SOME),
    Case("bad crc", API, fresh(damaged(60, "B", 9, fix_crc=False)), SOME),
    Case("format 1", API, fresh(damaged(16, "b", 1)), SOME),
    Case("format 0", API, fresh(damaged(16, "b", 0)), SOME),
    Case("format 3", API, fresh(damaged(16, "b", 3)), SOME),
    Case("length 5", API, fresh(damaged(8, ">i", 5)), SOME),
    Case("length -1", API, fresh(damaged(8, ">i", -1)), SOME),
    Case("base offset 55", API, fresh(damaged(0, ">q", 55)), SOME),
    Case("partition leader epoch 7", API, fresh(damaged(12, ">i", 7)), SOME),
    Case("last offset delta too high", API, fresh(damaged(23, ">i", 9)), SOME),
    Case("last offset delta negative", API, fresh(damaged(23, ">i", -1)), SOME),
    Case("count too high", API, fresh(damaged(57, ">i", 5)), SOME),
    Case("count 0", API, fresh(damaged(57, ">i", 0)), SOME),
    Case("count -1", API, fresh(damaged(57, ">i", -1)), SOME),
    Case("unknown codec", API, fresh(damaged(21, ">h", 7)), SOME),
    Case("codec, but not compressed", API, fresh(damaged(21, ">h", 1)), SOME),
    Case("log append time from a client", API, fresh(damaged(21, ">h", 8)), SOME),
    Case("unused attribute", API, fresh(damaged(21, ">h", 0x100)), SOME),
    Case("delete horizon from a client", API, fresh(damaged(21, ">h", 0x40)), SOME),
    Case("control batch", API, fresh(batch(control=True)), SOME),
    Case("transactional batch without an id", API, fresh(batch(
        transactional=True, producer_id=PRODUCER, producer_epoch=0, base_sequence=0)), SOME),
    Case("record too large", API, fresh(batch(value=b"x" * 1_100_000)), SOME),
    Case("null value", API, fresh(batch(value=None, key=b"k")), SOME),
    Case("future time", API, fresh(batch(time=2 * HOUR_MS)), SOME),
    Case("a little in the future", API, fresh(batch(time=HOUR_MS // 2)), SOME),
    Case("time -1", API, fresh(damaged(27, ">q", -1)), SOME),
    Case("max timestamp wrong", API, fresh(damaged(35, ">q", 5)), SOME),

    *(case for codec in ("gzip", "snappy", "lz4", "zstd") for case in compressed(codec)),

    *(case for codec in ("none", "gzip", "zstd") for case in wrong_records(codec)),
    *(case for codec in ("gzip", "snappy", "lz4", "zstd") for case in wrong_payloads(codec)),
    Case("records, to be converted: deltas out of order", API,
         fresh(records(record(0), record(2), record(1), codec="zstd")), "13",
         before=configured(compression_type="gzip")),
    Case("records, to be converted: length too high", API,
         fresh(records(record(0), record(1, length=9), record(2), codec="zstd")), "13",
         before=configured(compression_type="gzip")),
    Case("records, to be converted: a time before 1970", API,
         fresh(records(record(0), record(1, time=-(2**62)), record(2))), "13",
         before=configured(compression_type="gzip")),

    Case("idempotent, first", API, of(PRODUCER, 0, 0)),
    Case("idempotent, next", API, of(PRODUCER, 0, 1), SOME, before=sent(of(PRODUCER, 0, 0))),
    Case("idempotent, again", API, of(PRODUCER, 0, 0), before=sent(of(PRODUCER, 0, 0))),
    Case("idempotent, an old one again", API, of(PRODUCER, 0, 0), SOME,
         before=sent(*(of(PRODUCER, 0, at) for at in range(4)))),
    Case("idempotent, forgotten one again", API, of(PRODUCER, 0, 0), SOME,
         before=sent(*(of(PRODUCER, 0, at) for at in range(7)))),
    Case("idempotent, gap", API, of(PRODUCER, 0, 3), before=sent(of(PRODUCER, 0, 0))),
    Case("idempotent, part of an old one", API, of(PRODUCER, 0, 1, 2), SOME,
         before=sent(of(PRODUCER, 0, 0, 3))),
    Case("idempotent, first sequence 7", API, of(PRODUCER, 0, 7), SOME),
    Case("idempotent, epoch up", API, of(PRODUCER, 1, 0), SOME, before=sent(of(PRODUCER, 0, 0))),
    Case("idempotent, epoch up with a gap", API, of(PRODUCER, 1, 3), SOME,
         before=sent(of(PRODUCER, 0, 0))),
    Case("idempotent, old epoch", API, of(PRODUCER, 0, 1), before=sent(of(PRODUCER, 1, 0))),
    Case("idempotent, another producer", API, of(NEXT, 0, 0), SOME,
         before=sent(of(PRODUCER, 0, 0))),
    Case("idempotent, no sequence", API, of(PRODUCER, 0, -1), SOME),
    Case("idempotent, negative epoch", API, of(PRODUCER, -1, 0), SOME),
    Case("sequence without a producer", API, of(-1, -1, 3), SOME),
    Case("sequence wraps", API, of(PRODUCER, 0, 0), SOME, before=sent(of(PRODUCER, 0, 2**31 - 1))),
    Case("idempotent, two batches", API, fresh(changed(
        lambda data: data + data, producer_id=PRODUCER, producer_epoch=0, base_sequence=0)), SOME),

    Case("compacted topic without a key", API, fresh(batch(2)), SOME,
         before=configured(cleanup_policy="compact")),
    Case("compacted topic with a key", API, fresh(batch(2, key=b"k")), SOME,
         before=configured(cleanup_policy="compact")),
    Case("log append time", API, fresh(batch(2)), SOME, mask={"log_append_time_ms": "a time"},
         before=configured(message_timestamp_type="LogAppendTime")),
    Case("max.message.bytes", API, fresh(batch(value=b"x" * 200)), SOME,
         before=configured(max_message_bytes="200")),
    Case("time too old", API, fresh(batch(time=-2000)), SOME,
         before=configured(message_timestamp_before_max_ms="1000")),
    Case("min.insync.replicas 4", API, fresh(), SOME,
         before=configured(min_insync_replicas="4")),
    Case("min.insync.replicas 4, acks 1", API, fresh(acks=1), SOME,
         before=configured(min_insync_replicas="4")),
    Case("transactional id that nobody has", API, {**fresh(), "transactional_id": "{user}"}, SOME),
)  # fmt: skip
