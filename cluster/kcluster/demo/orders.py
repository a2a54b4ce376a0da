"""Twenty thousand orders of a café, as readable JSON lines; identical in every run.

Owns: the demo's default input, and reading a text file instead.  Never: sends anything.
"""

from __future__ import annotations

import json
from random import Random
from typing import Final

ORDERS: Final = 20_000
SEED: Final = 7

_MENU: Final = (
    ("espresso", 180), ("double espresso", 240), ("cappuccino", 320), ("flat white", 350),
    ("filter coffee", 290), ("green tea", 280), ("hot chocolate", 380), ("orange juice", 420),
    ("croissant", 210), ("cheesecake", 490), ("walnut cake", 450), ("toast", 260),
)  # fmt: skip
"""The menu's items: name, price in cents."""
_PEOPLE: Final = (
    "Amira", "Bo", "Chiara", "Dmitri", "Elif", "Femi", "Goran", "Hana", "Ines", "Jonas",
    "Kaya", "Lucía", "Mei", "Nils", "Oluchi", "Priya", "Quentin", "Rosa", "Sami", "Tove",
)  # fmt: skip
_CITIES: Final = ("Lisbon", "Gdańsk", "Nairobi", "Osaka", "Bogotá", "Leeds", "Tartu", "Izmir")
_PAID: Final = ("card", "card", "card", "phone", "cash")


def orders(count: int = ORDERS, seed: int = SEED) -> list[str]:
    """`count` orders, one JSON object per line, without the line end."""
    rng = Random(seed)
    lines = []
    second = 7 * 3600
    for number in range(1, count + 1):
        second += rng.randrange(3)
        items, total_cents = [], 0
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            name, price_cents = rng.choice(_MENU)
            pieces = rng.choice((1, 1, 1, 2))
            total_cents += pieces * price_cents
            items.append(f"{pieces} {name}")
        order = {
            "order": number,
            "at": f"{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}",
            "city": rng.choice(_CITIES),
            "customer": rng.choice(_PEOPLE),
            "items": items,
            "total": f"{total_cents // 100}.{total_cents % 100:02d}",
            "paid": rng.choice(_PAID),
        }
        lines.append(json.dumps(order, ensure_ascii=False))
    return lines


def lines_of(path: str) -> list[str]:
    """The lines of a UTF-8 text file without the empty ones; invalid bytes become U+FFFD."""
    with open(path, encoding="utf-8", errors="replace") as file:
        stripped = (line.rstrip("\r\n") for line in file)
        return [line for line in stripped if line]
