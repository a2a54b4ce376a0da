"""The menus of the page: the actions that it offers for a broker, a link or a partition.

Owns: MenuItem, the place of an action in a menu.  Never: draws a menu (runs/page/actions.js does),
performs an action.  Kafka: no counterpart.

Words and values may hold names in braces, which the page replaces: `{broker}`; `{a}` and `{b}`, the
ends of a link; `{partition}`; `{follower}`, in an item for a follower.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct


class MenuItem(Struct, frozen=True):
    """An entry of a menu.

    `of`: the kind of object on which it acts; the menu of a partition also has the items of each
    follower in the ISR. `when`: the states in which it is offered: `up`, `paused` or `down` for a
    broker, `led` or `leaderless` for a partition; empty: all.  `value`: the value of the action's
    verb, as in a scenario file.  `is_last`: whether it comes after the items of actions that are
    declared later.  `needs`: the security without which a cluster is not offered it.
    """

    of: Literal["broker", "link", "partition", "follower"]
    words: str
    value: str | dict[str, str | bool] | None
    when: tuple[str, ...] = ()
    is_last: bool = False
    needs: Literal["sasl", "certificates"] | None = None


def menu_json(items: Iterable[tuple[str, MenuItem]]) -> str:
    """The verbs and their items in the form that the page reads: a list of objects."""
    rows = [{"verb": verb, **msgspec.to_builtins(item)} for verb, item in items]
    return msgspec.json.encode(rows).decode()
