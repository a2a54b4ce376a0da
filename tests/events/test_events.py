"""Types of events: one per kind, and a round trip through JSON."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from kcluster.contract import Event
from kcluster.events import EVENT_TYPES, KINDS, AnyEvent, kind
from kcluster.events.base import kind_of
from kcluster.events.partitions import LeaderElected, PartitionOffline
from kcluster.events.reasons import ElectionKind, Requested
from kcluster.pipeline.tables import ddl
from kcluster.runs.record import NoteRow
from tests.events.examples import EXAMPLES


def test_events__each_kind_has_one_type_named_by_its_class() -> None:
    assert Counter(KINDS).most_common(1)[0][1] == 1
    assert [kind_of(each.__name__) for each in EVENT_TYPES] == list(KINDS)
    assert (kind(LeaderElected), kind_of("DiskFull")) == ("leader_elected", "disk_full")


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.kind)
def test_events__each_survives_a_round_trip(event: Event) -> None:
    again = msgspec.json.decode(msgspec.json.encode(event), type=AnyEvent)
    assert again == event
    assert type(again) is type(event)


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


def test_events__one_column_of_spark_has_the_fields_of_all_kinds() -> None:
    columns = ddl(NoteRow)
    fields = {name for each in EVENT_TYPES for name in each.__struct_fields__}
    assert all(f"`{name}`: " in columns for name in fields)
    assert "`ranges`: array<struct<`topic`: string, `partition`: bigint" in columns
    assert "`reason`: struct<`kind`: string, `broker`: bigint" in columns
    assert columns.startswith("`id` array<bigint>, `at_ms` bigint, `event` struct<`kind`: string")
