"""Types of events: one per kind, a round trip through JSON, and words for each."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

import msgspec
import pytest
from msgspec import inspect

from kcluster.contract import Event
from kcluster.deaths import DeathKind
from kcluster.events import EVENT_TYPES, KINDS, AnyEvent, kind
from kcluster.events.base import kind_of
from kcluster.events.brokers import BrokerDown, BrokerFenced
from kcluster.events.partitions import LeaderElected, PartitionOffline
from kcluster.events.reasons import AnyReason, ElectionKind, Fenced, Fencing, Requested
from kcluster.events.words import is_said_by, reason_text, sentence_of, short_text, text_of
from kcluster.pipeline.tables import ddl
from kcluster.runs.record import NoteRow


def example(kind: inspect.Type) -> Any:
    """A value of this type."""
    match kind:
        case inspect.UnionType(types=types):
            return example(types[0])
        case inspect.StructType(cls=cls, fields=fields):
            return cls(**{each.name: example(each.type) for each in fields})
        case inspect.EnumType(cls=cls):
            return next(iter(cls))
        case inspect.VarTupleType(item_type=item):
            return (example(item),)
        case inspect.TupleType(item_types=items):
            return tuple(map(example, items))
        case inspect.DictType(key_type=key, value_type=value):
            return {example(key): example(value)}
    plain = {
        inspect.IntType: 7,
        inspect.FloatType: 0.5,
        inspect.StrType: "preferred",
        inspect.BoolType: True,
        inspect.NoneType: None,
    }
    return plain[type(kind)]


EXAMPLES = [example(inspect.type_info(each)) for each in EVENT_TYPES]


def test_events__each_kind_has_one_type_named_by_its_class() -> None:
    assert Counter(KINDS).most_common(1)[0][1] == 1
    assert [kind_of(each.__name__) for each in EVENT_TYPES] == list(KINDS)
    assert (kind(LeaderElected), kind_of("DiskFull")) == ("leader_elected", "disk_full")


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_events__each_survives_a_round_trip(event: Event) -> None:
    again = msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent)
    assert again == event
    assert type(again) is type(event)


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_events__each_has_words_and_a_subject(event: Event) -> None:
    for text in (text_of(event), sentence_of(event), short_text(event)):
        assert text
        assert text == text.strip()
        assert "\n" not in text
    assert event.subject != event.kind, "it has its own subject"


@pytest.mark.parametrize("reason", get_args(AnyReason), ids=lambda each: each.__name__)
def test_events__each_reason_has_words(reason: type[Any]) -> None:
    assert reason_text(example(inspect.type_info(reason)))


def test_events__an_unknown_kind_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="never_heard_of"):
        msgspec.json.decode(b'{"kind": "never_heard_of"}', type=AnyEvent)


@pytest.mark.parametrize(
    ("election", "clean", "expected"),
    [
        (ElectionKind.IN_SYNC, True, False),
        (ElectionKind.UNCLEAN, False, True),
        (ElectionKind.LAST_KNOWN_LEADER, False, False),
    ],
)
def test_events__which_elections_only_a_setting_allows(
    election: ElectionKind, clean: bool, expected: bool
) -> None:
    about = ("orders", 0, 1, 2, 5, clean, Requested())
    assert LeaderElected(*about, election).is_allowed_by_setting is expected
    assert PartitionOffline(*about, (), ()).is_allowed_by_setting is not clean


def test_events__a_reason_names_the_fencing_of_the_same_broker() -> None:
    fenced = BrokerFenced(1, Fencing.SESSION_EXPIRED, 90)
    reason = Fenced(1, Fencing.SESSION_EXPIRED, 90)
    elected = LeaderElected("orders", 0, 1, 2, 5, True, reason, ElectionKind.IN_SYNC)
    assert text_of(fenced) in text_of(elected)
    assert is_said_by(elected, fenced)
    assert not is_said_by(elected, BrokerFenced(2, Fencing.SESSION_EXPIRED, 90))
    assert not is_said_by(elected, BrokerDown(1, DeathKind.KILL))


def test_events__one_column_of_spark_has_the_fields_of_all_kinds() -> None:
    columns = ddl(NoteRow)
    fields = {name for each in EVENT_TYPES for name in each.__struct_fields__}
    assert all(f"`{name}`: " in columns for name in fields)
    assert "`ranges`: array<struct<`topic`: string, `partition`: bigint" in columns
    assert "`reason`: struct<`kind`: string, `broker`: bigint" in columns
    assert columns.startswith("`id` array<bigint>, `at_ms` bigint, `event` struct<`kind`: string")
