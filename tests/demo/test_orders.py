from __future__ import annotations

import json
from pathlib import Path

from kcluster.demo.orders import lines_of, orders


def test_orders__are_the_same_every_time_and_readable_json() -> None:
    assert orders(50) == orders(50)
    order = json.loads(orders(3)[2])
    assert order["order"] == 3
    assert set(order) == {"order", "at", "city", "customer", "items", "total", "paid"}


def test_orders__differ_for_another_seed() -> None:
    assert orders(50, seed=1) != orders(50, seed=2)


def test_lines_of__leaves_out_empty_lines_and_survives_bad_bytes(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"one\r\n\nt\xffwo\nthree")
    assert lines_of(str(path)) == ["one", "t�wo", "three"]
