"""Which cases depend on what a cluster is: on the number of its brokers, on configs.

Owns: the conditions of the recorded clusters, the file of the cases that depend on them.  Never:
asks a cluster (cluster.py does), makes the file (compare/needs.py does).
"""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from msgspec import Struct

from kcluster.conform.cluster import ClusterFacts
from kcluster.conform.systems import BROKERS
from kcluster.packaged import packaged_text
from kcluster.protocol.errors import ErrorCode

FILE: Final = "conform/recorded/needs.json"


class Need(Struct, frozen=True):
    """A condition of the clusters that were recorded.  `config`: "" for one that is no config."""

    name: str
    """Its name in the file, as a reader of a report sees it."""
    config: str = ""
    value: str = ""


CONTROLLERS: Final = Need("controllers on the brokers")
_OF_CONTROLLERS: Final = frozenset(("quorum: quorum", "quorum: quorum, asked elsewhere"))
NO_LOGIN: Final = Need("clients that do not log in")
_WITHOUT_LOGIN: Final = frozenset(
    (
        "security: all tokens", "security: tokens of a user", "security: tokens of nobody",
        "wire: describe_delegation_token: bytes behind it",
        "wire: describe_delegation_token: defaults",
    )
)  # fmt: skip
TOKENS: Final = Need("delegation tokens")
_WITH_TOKENS: Final = frozenset(("rights: tokens of nobody",))
THREE_BROKERS: Final = Need("three brokers")
NO_AUTHORIZER: Final = Need("no authorizer")
NEEDS: Final = (
    THREE_BROKERS,
    NO_AUTHORIZER,
    *(
        Need(f"{config}={value}", config, value)
        for config, value in (
            ("auto.create.topics.enable", "true"),
            ("default.replication.factor", "3"),
            ("group.initial.rebalance.delay.ms", "0"),
            ("num.partitions", "4"),
        )
    ),
)


def unmet(facts: ClusterFacts) -> list[Need]:
    """The conditions that a cluster does not meet; a config that it does not show is met."""
    found = [] if facts.voters == frozenset(facts.brokers) else [CONTROLLERS]
    if facts.tokens not in (None, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
        found.append(NO_LOGIN)
    if facts.tokens == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED:
        found.append(TOKENS)
    for need in NEEDS:
        if need == THREE_BROKERS:
            is_met = len(facts.brokers) == len(BROKERS)
        elif need == NO_AUTHORIZER:
            is_met = not facts.has_authorizer
        else:
            is_met = facts.configs.get(need.config, need.value) == need.value
        if not is_met:
            found.append(need)
    return found


@cache
def dependents() -> dict[str, frozenset[str]]:
    """The name of a need -> the cases (`family: name`) that depend on it."""
    found = json.loads(packaged_text(FILE))
    by_name = {name: frozenset(cases) for name, cases in found.items()}
    by_hand = {CONTROLLERS: _OF_CONTROLLERS, NO_LOGIN: _WITHOUT_LOGIN, TOKENS: _WITH_TOKENS}
    return {**{need.name: cases for need, cases in by_hand.items()}, **by_name}


def reason_of(case: str, missing: list[Need]) -> str:
    """Why a case cannot be compared; "" if it can."""
    for need in missing:
        if case in dependents().get(need.name, ()):
            return f"it needs a cluster with {need.name}"
    return ""
