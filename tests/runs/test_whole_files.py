"""Files of a run on a disk that becomes full: whole or not there, and for this user only."""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kcluster.runs.directory import new_run, read_run, write_into, write_run
from kcluster.runs.record import RunInfo, RunRecord
from kcluster.runs.whole_files import append_whole, removed_on_failure, replacing


@contextmanager
def small_files(size_bytes: int) -> Iterator[None]:
    """No file can become larger: Linux reports it as it reports a full disk, by the write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def record() -> RunRecord:
    return RunRecord(RunInfo("x", "virtual", 1, 0, 0, "valid"))


def test_replacing__the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_bytes(b"old")
    with replacing(file) as out:
        out.write(b"new")
        assert file.read_bytes() == b"old"
    assert file.read_bytes() == b"new"
    with small_files(4096), pytest.raises(OSError, match=r"s\.yaml"), replacing(file) as out:
        out.write(b"x" * 10_000)
    assert file.read_bytes() == b"new"
    with pytest.raises(KeyError), replacing(tmp_path / "another") as out:
        raise KeyError
    assert os.listdir(tmp_path) == ["s.yaml"]


def test_replacing__a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    with replacing(tmp_path / "link") as out:
        out.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"x"


def test_append__all_or_nothing(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    append_whole(file, b"first\n")
    with small_files(1024), pytest.raises(OSError, match=r"events\.jsonl"):
        append_whole(file, b"x" * 10_000)
    assert file.read_bytes() == b"first\n"


def test_run__is_for_this_user_only(tmp_path: Path) -> None:
    path = write_run(tmp_path, record())
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o600}


def test_run__on_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    with small_files(1024), pytest.raises(OSError, match=r"timeline\.html"):
        write_run(tmp_path, record())
    assert os.listdir(tmp_path) == []


def test_run__that_exists_is_what_it_was(tmp_path: Path) -> None:
    path = new_run(tmp_path, record().info)
    with removed_on_failure(path):
        write_into(path, record())
    changed = record()
    changed.info.outcome = "invalid"
    with small_files(1024), pytest.raises(OSError, match=r"timeline\.html"):
        write_into(path, changed)
    assert read_run(path)[0].info.outcome == "valid"
    assert not [name for name in os.listdir(path) if name.startswith(".")]
