"""Made-up JSON: values at their extremes, as text, since no encoder would write most of them.

Owns: which JSON is tried.  Never: knows what it is sent to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from tests.fuzz.mutations import mutated

ATOMS: Final = (
    *("null", "true", "false", "0", "-1", "1", "-0", "1.5", "1e999", "-1e999", "NaN", "Infinity"),
    *(str(2**31), str(2**63 - 1), str(2**63), str(-(2**63) - 1), "9" * 5_000, "1" + "0" * 400),
    *('""', '"orders"', '"orders-0"', '"1"', '"-1"', '"leader(orders-0)"', '"1s"', '"-1s"'),
    *('"99999999999999d"', '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '"\\u001b]0;x\\u0007"'),
    *('"' + "x" * 70_000 + '"', '"../../x"', '"{}"', '"*"', "[]", "{}", '{"":null}'),
    *("[" * 100 + "]" * 100, "[" * 100_000, '{"a":' * 100_000, '{"a":1,"a":2}', '{"\\ud800":1}'),
    *("\ufeff{}", "", " ", "//", "'1'", '{"a":1}x', '"' + "\\" * 99),
)


def made_up_value(rng: Random, depth: int = 0) -> str:
    """A JSON value, or something that is nearly one."""
    if depth > 2 or rng.random() < 0.6:
        return rng.choice(ATOMS)
    parts = [made_up_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if rng.random() < 0.5:
        return f"[{','.join(parts)}]"
    return "{" + ",".join(f'"{rng.choice("abcde")}":{part}' for part in parts) + "}"


def made_up_object(rng: Random, names: Sequence[str], likely: Sequence[str]) -> str:
    """An object with some of these keys; `likely`: values, as JSON, that mean something."""
    entries = []
    for name in names:
        if rng.random() < 0.75:
            value = rng.choice(likely) if rng.random() < 0.6 else made_up_value(rng, 1)
            entries.append(f"{json.dumps(name)}:{value}")
    if rng.random() < 0.15:
        entries.append(f"{rng.choice(('', *ATOMS[20:]))}:1")
    if rng.random() < 0.1:
        entries.append(f'"strange":{made_up_value(rng, 1)}')
    return "{" + ",".join(entries) + "}"


def changed(rng: Random, line: bytes) -> bytes:
    """A JSON text with one of its values replaced, or its bytes broken."""
    kind = rng.random()
    if kind < 0.3:
        return mutated(rng, line)
    try:
        value: Any = json.loads(line)
    except ValueError:
        return mutated(rng, line)
    mark = "made-up value here"
    paths = list(paths_of(value))
    if kind < 0.35 or not paths:
        return made_up_value(rng).encode("utf-8", "surrogatepass")
    holder, key = rng.choice(paths)
    if kind < 0.45 and isinstance(holder, dict):
        del holder[key]
        return json.dumps(value).encode()
    holder[key] = mark
    text = json.dumps(value).replace(f'"{mark}"', made_up_value(rng, 1))
    return text.encode("utf-8", "surrogatepass")


def paths_of(value: Any) -> Any:
    """(container, key) of every value inside."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(entries) if isinstance(value, dict | list) else ():
        yield value, key
        if isinstance(inner, dict | list):
            yield from paths_of(inner)
