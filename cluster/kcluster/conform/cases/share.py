"""ShareFetch and ShareAcknowledge that meet no records: members, sessions, partitions.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import share_acknowledge, share_fetch
from kcluster.conform.case import Case, passed_on
from kcluster.protocol.apis import ApiKey

FETCH, ACKNOWLEDGE = ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE


def of_both(name: str, **more: object) -> tuple[Case, Case]:
    """The same request fields in a fetch and in an acknowledgement."""
    return (
        Case(f"fetch: {name}", FETCH, share_fetch(**passed_on(more))),
        Case(f"acknowledge: {name}", ACKNOWLEDGE, share_acknowledge(**passed_on(more))),
    )


CASES = (
    *of_both("no group", group=None),
    *of_both("no member", member=None),
    *of_both("an empty member id", member=""),
    *of_both("a member id that is too long", member="m" * 37),
    *of_both("an empty group id", group="", epoch=1),
    *of_both("first epoch", epoch=0),
    *of_both("epoch without a session", epoch=7),
    *of_both("final epoch without a session", epoch=-1),
    *of_both("epoch below all", epoch=-7),
    *of_both("acknowledgements at first", epoch=0, acks=[(0, 0, [1])]),
    Case("fetch: group that is not initialized", FETCH,
         share_fetch(topic_id="{topic_id}", max_wait_ms=3_000)),
    Case("fetch: at a follower", FETCH, share_fetch(topic_id="{topic_id}"), to=2),
    Case("fetch: unknown topic", FETCH, share_fetch(topic_id="{missing_id}", max_wait_ms=50)),
    Case("fetch: unknown partition", FETCH, share_fetch(partition=9, max_wait_ms=50)),
    Case("fetch: no partition", FETCH, {**share_fetch(), "topics": []}),
    Case("fetch: renewal with limits", FETCH, {**share_fetch(), "is_renew_ack": True}, "2"),
)  # fmt: skip
