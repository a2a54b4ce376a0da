"""Eras: Kafka as it was before a fix, by the fix's name.

Owns: the names, what each means, and what brings it about: a config, a feature's level, or a switch
in brokers.  Never: switches anything (the broker's parts read `Era`).
Kafka: the proposals and issues that are named here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct


class Era(Struct, frozen=True):
    """The switches in brokers; without any, brokers are those of today.

    `truncates_to_high_watermark`: a new follower drops what is above its own high watermark, and
    compares no epochs (before KIP-101).  `compares_epochs_once`: a new follower truncates once by
    the offset that the leader names, and does not look at the epoch before it (before KIP-279).
    `ignores_committing_members`: offsets are committed in transactions whoever the member is
    (before KIP-447)."""

    truncates_to_high_watermark: bool = False
    compares_epochs_once: bool = False
    ignores_committing_members: bool = False


TODAY: Final = Era()


class Fix(Struct, frozen=True):
    """What a cluster before a fix has.  `meaning`: one sentence, for the reference."""

    meaning: str
    era: Era = TODAY
    config: Mapping[str, str] = {}
    features: Mapping[str, int] = {}


FIXES: Final = {
    "before KIP-101": Fix(
        "A follower truncates to its own high watermark, which lags behind; Kafka 0.11 compares"
        " leader epochs.",
        era=Era(truncates_to_high_watermark=True),
    ),
    "before KIP-279": Fix(
        "A follower asks once where an epoch ends, and keeps what it wrote in an epoch that the"
        " leader does not know; Kafka 2.0 compares again.",
        era=Era(compares_epochs_once=True),
    ),
    "before KIP-447": Fix(
        "A coordinator commits the offsets of a transaction without looking at the member and its"
        " generation; Kafka 2.5 fences members that have lost their partitions.",
        era=Era(ignores_committing_members=True),
    ),
    "before KAFKA-14402": Fix(
        "A leader appends to a transaction without asking its coordinator, as with"
        " transaction.partition.verification.enable=false; Kafka 3.6 asks.",
        config={"transaction.partition.verification.enable": "false"},
    ),
    "before KIP-966": Fix(
        "Only a member of the ISR is elected, and the high watermark advances however small the ISR"
        " is, as with eligible.leader.replicas.version=0; Kafka 4.1 has eligible leaders.",
        features={"eligible.leader.replicas.version": 0},
    ),
}
"""The fixes by the names of the eras before them."""


def era_of(names: Iterable[str]) -> Era:
    """The switches of several eras together."""
    chosen = [FIXES[name].era for name in names]
    return Era(*(any(getattr(era, field) for era in chosen) for field in Era.__struct_fields__))


def configs_of(names: Iterable[str]) -> dict[str, str]:
    """The configs of eras; a topology may set others."""
    return {key: value for name in names for key, value in FIXES[name].config.items()}


def features_of(names: Iterable[str]) -> dict[str, int]:
    """The levels of features of eras; a topology may set others."""
    return {key: value for name in names for key, value in FIXES[name].features.items()}
