"""Partitions by broker (leader, ISR, ELR), and the leaderless, imbalanced and reassigning ones.

Owns: these sets, updated with each record.  So fencing a broker, or waiting until it leads nothing
or is in sync, costs in proportion to its own partitions, not to all.  Never: decides. Kafka:
BrokersToIsrs, BrokersToElrs.
"""

from __future__ import annotations

from kcluster.controller.partitions.reassigning import is_reassigning
from kcluster.controller.ports import PartitionKey
from kcluster.metadata.records import NO_LEADER, PartitionRegistration

_Keys = dict[PartitionKey, None]
"""An ordered set: equal records give an equal order in every process."""


class PartitionIndex:
    """`in_isr[broker]`, `in_elr[broker]`, `led_by[broker]`, `out_of_sync[broker]`: partitions in
    the order of their addition."""

    __slots__ = (
        "imbalanced", "in_elr", "in_isr", "leaderless", "led_by", "out_of_sync", "reassigning"
    )  # fmt: skip

    def __init__(self) -> None:
        self.in_isr: dict[int, _Keys] = {}
        self.in_elr: dict[int, _Keys] = {}
        self.led_by: dict[int, _Keys] = {}
        self.out_of_sync: dict[int, _Keys] = {}
        """The partitions of which the broker has a replica that is not in the ISR."""
        self.leaderless: _Keys = {}
        self.imbalanced: _Keys = {}
        """The partitions that are led, but not by the preferred leader."""
        self.reassigning: _Keys = {}

    def update(self, old: PartitionRegistration | None, new: PartitionRegistration | None) -> None:
        """Take account of a partition that was created (`old` None), changed, or removed (`new`
        None)."""
        some = new or old
        assert some is not None
        key = (some.topic_id, some.partition)
        old_isr, new_isr = old.isr if old else (), new.isr if new else ()
        if old_isr != new_isr:
            _move(self.in_isr, key, old_isr, new_isr)
        old_elr, new_elr = old.elr if old else (), new.elr if new else ()
        if old_elr != new_elr:
            _move(self.in_elr, key, old_elr, new_elr)
        old_outside, new_outside = _outside_isr(old), _outside_isr(new)
        if old_outside != new_outside:
            _move(self.out_of_sync, key, old_outside, new_outside)
        if (
            old is None
            or new is None
            or old.leader != new.leader
            or old.replicas[0] != new.replicas[0]
        ):
            self._leader_changed(key, old, new)
        if new is None or not is_reassigning(new):
            self.reassigning.pop(key, None)
        else:
            self.reassigning[key] = None

    def _leader_changed(
        self,
        key: PartitionKey,
        old: PartitionRegistration | None,
        new: PartitionRegistration | None,
    ) -> None:
        if old is not None:
            self.leaderless.pop(key, None)
            self.imbalanced.pop(key, None)
            if old.leader != NO_LEADER:
                self.led_by[old.leader].pop(key)
        if new is None:
            return
        if new.leader == NO_LEADER:
            self.leaderless[key] = None
            return
        self.led_by.setdefault(new.leader, {})[key] = None
        if new.leader != new.replicas[0]:
            self.imbalanced[key] = None


def _outside_isr(partition: PartitionRegistration | None) -> tuple[int, ...]:
    if partition is None or len(partition.isr) == len(partition.replicas):
        return ()
    # A list first: compiled, a generator costs three times as much.
    return tuple([broker for broker in partition.replicas if broker not in partition.isr])


def _move(
    index: dict[int, _Keys], key: PartitionKey, old: tuple[int, ...], new: tuple[int, ...]
) -> None:
    for broker in old:
        if broker not in new:
            del index[broker][key]
    for broker in new:
        if broker not in old:
            index.setdefault(broker, {})[key] = None
