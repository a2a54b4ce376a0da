"""A grid as cells and seeds; all its problems are reported at once, each with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.grid import Grid, GridError, load_grid, parse_grid, with_seeds

GRID = """
name: durability
seeds: 3
grid:
  replication_factor: [1, 3]
  min_insync_replicas: [1, 2]
  acks: [1, all]
  repair: 2.5s
  failures: 2
"""

WRONG = {
    "": "g.yaml:1:1: empty: not a grid",
    "[1]": "g.yaml:1:1: this is a list; a grid is a mapping with keys like seeds, grid",
    "seeds: 3": "g.yaml:1:1 grid: empty: it must be a mapping of columns like acks: [1, all]",
    "grid: {}": "g.yaml:1:1 grid: empty: it must be a mapping of columns like acks: [1, all]",
    "grid: {brokers: }": "g.yaml:1:8 grid.brokers: empty; at least one value is needed",
    "grid: {acks: []}": "g.yaml:1:8 grid.acks: empty; at least one value is needed",
    "grid: {ackz: 1}": "g.yaml:1:8 grid.ackz: no such column; did you mean acks?",
    "gird: {acks: 1}\ngrid: {acks: 1}": "g.yaml:1:1 gird: no such key of a grid file; did you mean"
    " grid?",
    "grid: {acks: 2}": "g.yaml:1:14 grid.acks: 2: no such acks; there are 0, 1, all",
    "grid: {brokers: [3, 5, 3]}": "g.yaml:1:24 grid.brokers[2]: 3 twice",
    "grid: {repair: [1s, 1000ms], failures: 1}": "g.yaml:1:21 grid.repair[1]: 1s twice",
    "grid: {repair: 1s}": "g.yaml:1:8 grid.repair: it has no effect without failures or mtbf",
    "grid: {repair: soon, mtbf: 1m}": "g.yaml:1:16 grid.repair: soon is not a time like 250ms,"
    " 5s or 2m; the units are ms, s, m, min, h",
    "grid: {brokers: 2}": "g.yaml:1:7 grid: no cell is left: 3 replicas need 3 brokers, not 2",
    "grid: {min_insync_replicas: 4}": "g.yaml:1:7 grid: no cell is left: min_insync_replicas 4"
    " exceeds replication_factor 3",
    "grid: {failures: 1, mtbf: 1m}": "g.yaml:1:7 grid: no cell is left: failures, mtbf and faults"
    " exclude each other",
    "grid: {failures: 1, failure_domain: rack}": "g.yaml:1:7 grid: no cell is left: failure_domain"
    " rack needs racks",
    "grid: {failures: 1, duration: 1s}": "g.yaml:1:7 grid: no cell is left: first_failure 1s is"
    " not before the end of the run at 1s",
    "grid: {idempotent: true, acks: 1}": "g.yaml:1:7 grid: no cell is left: an idempotent producer"
    " needs acks=all",
    "grid: {faults: no_such}": "g.yaml:1:16 grid.faults: no_such: no such profile here, in profiles"
    " or in ../profiles",
    "seeds: [1, 2, 1]\ngrid: {acks: 1}": "g.yaml:1:15 seeds[2]: seed 1 twice",
    "seeds: []\ngrid: {acks: 1}": "g.yaml:1:8 seeds: empty; at least one seed is needed",
    "seeds: 0\ngrid: {acks: 1}": "g.yaml:1:8 seeds: 0 is out of range; it must be at least 1",
    "seeds: 9000000\ngrid: {acks: [1, all]}": "g.yaml:1:8 seeds: 9,000,000 is too many: at"
    " most 10,000,000 runs are allowed, or 5,000,000 seeds of 2 cells",
}


def columns(text: str) -> Grid:
    return parse_grid(f"grid: {{{text}}}")


def test_grid__cells_are_all_possible_combinations() -> None:
    grid = parse_grid(GRID)
    assert (grid.name, grid.seeds) == ("durability", (1, 2, 3))
    assert grid.varied == ("replication_factor", "min_insync_replicas", "acks")
    assert [grid.title(at) for at in range(len(grid.cells))] == [
        "replication_factor=1 min_insync_replicas=1 acks=1",
        "replication_factor=1 min_insync_replicas=1 acks=all",
        "replication_factor=3 min_insync_replicas=1 acks=1",
        "replication_factor=3 min_insync_replicas=1 acks=all",
        "replication_factor=3 min_insync_replicas=2 acks=1",
        "replication_factor=3 min_insync_replicas=2 acks=all",
    ]
    assert (grid.left_out, grid.reasons) == (
        2,
        ("min_insync_replicas 2 exceeds replication_factor 1",),
    )
    assert {(cell.repair_ms, cell.failures, cell.brokers) for cell in grid.cells} == {(2500, 2, 3)}


def test_grid__columns_may_have_kafkas_dots() -> None:
    assert (
        columns("min.insync.replicas: [1, 2]").cells == columns("min_insync_replicas: [1, 2]").cells
    )
    with pytest.raises(GridError, match="min_insync_replicas is given twice"):
        columns("min.insync.replicas: 1, min_insync_replicas: 2")


@pytest.mark.parametrize("text", WRONG)
def test_grid__a_problem_is_reported_with_its_place(text: str) -> None:
    with pytest.raises(GridError) as caught:
        parse_grid(text, "g.yaml")
    assert str(caught.value) == WRONG[text]


def test_grid__all_problems_at_once_in_the_order_of_places() -> None:
    with pytest.raises(GridError) as caught:
        parse_grid("seeds: [4, 4]\ngrid:\n  ackz: 1\n  brokers: x\n  racks: []\nsed: 1\n", "g.yaml")
    places = [line.split()[0] for line in str(caught.value).splitlines()]
    assert places == ["g.yaml:1:12", "g.yaml:3:3", "g.yaml:4:12", "g.yaml:5:3", "g.yaml:6:1"]


def test_grid__an_unreadable_file_is_reported(tmp_path: Path) -> None:
    whole = {"no.yaml": None, "binary.yaml": b"name: a\ngrid: \xff", "big.yaml": b"#" * 600_000}
    message = []
    for name, data in whole.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(GridError) as caught:
            load_grid(tmp_path / name)
        message.append(str(caught.value).removeprefix(f"{tmp_path}/"))
    assert message == [
        "no.yaml: no such file",
        "binary.yaml:2:7: byte 0xff is not UTF-8",
        "big.yaml: larger than 512 KiB: not a grid",
    ]


def test_grid__a_profile_of_faults_is_part_of_its_cell(tmp_path: Path) -> None:
    profile = "every: 1s..2s\nkinds: [{kill: any broker}]\n"
    (tmp_path / "kills.yaml").write_text(profile)
    (tmp_path / "g.yaml").write_text(
        "grid: {faults: [none, kills, {kinds: [{pause: any broker}]}], duration: 5s}"
    )
    grid = load_grid(tmp_path / "g.yaml")
    names = [cell.columns()["faults"] for cell in grid.cells]
    assert names[:2] == ["none", "kills"]
    assert names[2].startswith("inline ")
    (tmp_path / "kills.yaml").write_text(profile.replace("2s", "3s"))
    changed = load_grid(tmp_path / "g.yaml")
    assert [a.key == b.key for a, b in zip(grid.cells, changed.cells, strict=True)] == [
        True,
        False,
        True,
    ]


def test_grid__a_cell_is_found_by_its_number_or_by_its_columns() -> None:
    grid = parse_grid(GRID)
    assert grid.find("4") == grid.find("acks=all,replication_factor=3 min_insync_replicas=1") == 3
    wrong = {
        "0": "cell 0: the cells are 1 to 6",
        "7": "cell 7: the cells are 1 to 6",
        "ack=all": "cell ack=all: ack: no such column; did you mean acks?",
        "acks=1": "cell acks=1: 3 cells match;"
        " replication_factor=1 min_insync_replicas=1 acks=1 is cell 1",
        "acks=0": "cell acks=0: no cell matches;"
        " replication_factor=1 min_insync_replicas=1 acks=1 is cell 1",
    }
    for words, message in wrong.items():
        with pytest.raises(ValueError) as caught:
            grid.find(words)
        assert str(caught.value) == message


def test_grid__seeds_read_each_form() -> None:
    grid = columns("acks: [1, all]")
    assert len(grid.seeds) == 100
    assert with_seeds(grid, "3").seeds == (1, 2, 3)
    assert with_seeds(grid, "7, 9..11,0").seeds == (7, 9, 10, 11, 0)
    wrong = {
        "0": "1..0: no seeds",
        "1..3,2": "seed 2 twice",
        "": "'' is not a seed;",
        "many": "many is not a seed; write 100, or 1..50,77",
        "5..": "5.. is not a seed",
        "-1": "-1 is not a seed",
        "1..99999999999": "1..99999999999: at most 10,000,000 runs are allowed, or 5,000,000"
        " seeds of 2",
        str(2**63) + "..": "is not a seed",
        f"{2**63}..{2**63}": "is the highest seed",
    }
    for words, message in wrong.items():
        with pytest.raises(ValueError) as caught:
            with_seeds(grid, words)
        assert message in str(caught.value)


def test_grid__a_cells_key_is_the_same_in_every_grid() -> None:
    grid = columns("acks: [1, all], failures: 1, repair: 2s")
    assert grid.cells[1].key == Cell(failures=1, repair_ms=2_000).key
    assert len({cell.key for cell in grid.cells}) == 2
