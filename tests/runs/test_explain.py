"""`kcluster explain`: a run as a story, and its logs as cells."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from rich.console import Console

from kcluster.cli.verbs.explain import command
from kcluster.events.partitions import BecameLeader
from kcluster.events.reasons import Fenced, Fencing
from kcluster.events.topics import TopicDeleted
from kcluster.runs.directory import write_run
from kcluster.runs.explain import drawing, explain, partitions_of, plain
from tests.runs.stage import truncated, unclean_run


def test_explain__an_unclean_election_with_its_cause_and_both_logs() -> None:
    story = "\n".join(plain(line) for line in explain(unclean_run())).splitlines()
    assert story[0] == "unclean  virtual, seed 7: invalid"
    assert story[1] == "  A story of orders."
    at = next(number for number, line in enumerate(story) if "UNCLEAN" in line)
    assert " ".join(story[at].split()) == (
        "+5000 ms leader_elected orders-0: leader 1 -> 2, epoch 1, UNCLEAN: broker 1 registered"
        " after an unclean restart (previous epoch 7); first active replica, out of sync (unclean)"
    )
    assert story[at + 1].strip() == "because broker 1 fenced: no heartbeat for 3000 ms"
    first, second = (line.split() for line in story[at + 2 : at + 4])
    assert first == ["broker", "1", "down,", "3", "ahead", "████████|", "end", "8,", "hw", "8"]
    assert second == ["broker", "2", "leader", "█████|", "end", "5,", "hw", "5"]


def test_explain__names_the_ground_of_a_run_on_a_real_kafka() -> None:
    run = unclean_run()
    run.info = replace(run.info, clock="kafka", ground="Apache Kafka 4.4.0")
    assert plain(next(explain(run))) == "unclean  kafka, Apache Kafka 4.4.0, seed 7: invalid"


def test_explain__each_log_is_labelled_by_its_state_at_that_moment() -> None:
    def labels(at_ms: int) -> list[str]:
        lines = (plain(line) for line in drawing(unclean_run(), "orders-0", at_ms))
        return [line.split("█")[0].strip() for line in lines]

    assert labels(2_600) == ["broker 1 leader", "broker 2 in ELR, 3 behind"]
    assert labels(4_000) == ["broker 1 down, leader", "broker 2 in ELR, 3 behind"]
    assert labels(7_000) == ["broker 1 down, 2 ahead", "broker 2 leader"]
    assert labels(8_000) == ["broker 1 in sync, 1 behind", "broker 2 leader"]
    assert labels(11_000) == ["broker 1 in sync", "broker 2 leader"]


def test_explain__a_cause_that_the_reason_names_is_not_shown_again() -> None:
    record = unclean_run()
    fenced = Fenced(1, Fencing.SESSION_EXPIRED, 3_000)
    record.notes[4].event = replace(record.notes[4].event, reason=fenced)
    story = [plain(line) for line in explain(record)]
    at = next(number for number, line in enumerate(story) if "UNCLEAN" in line)
    assert story[at].endswith(
        "broker 1 fenced: no heartbeat for 3000 ms; first active replica, out of sync (unclean)"
    )
    assert "because" not in story[at + 1]


def test_explain__cells_have_the_colour_of_the_epoch_that_wrote_them() -> None:
    at_end = list(drawing(unclean_run(), "orders-0", 11_000))
    assert len(at_end) == 2
    for line in at_end:
        assert line.count("[cyan]█") == 5
        assert line.count("[yellow]█") == 1
    assert list(drawing(unclean_run(), "orders-0", 0)) == []


def test_explain__echoes_and_other_partitions_are_left_out() -> None:
    record = unclean_run()
    record.notes[4].event = BecameLeader("orders", 0, 2, 1, 5)
    record.notes[6].event = truncated("other", 1)
    lines = "\n".join(explain(record, "orders-0"))
    assert "UNCLEAN" not in lines
    assert "drops offsets" not in lines
    assert "process killed" in lines
    with pytest.raises(KeyError):
        list(explain(record, "orders-9"))


def test_explain__text_that_looks_like_markup_stays_text() -> None:
    record = unclean_run("[red]name[/]")
    record.notes[2].event = TopicDeleted("[1, 2] [bold]not bold[/] [/nothing]")
    out = io.StringIO()
    console = Console(file=out, width=200)
    for line in explain(record):
        console.print(line, highlight=False, soft_wrap=True)
    assert "[red]name[/]" in out.getvalue()
    assert "topic [1, 2] [bold]not bold[/] [/nothing] deleted" in out.getvalue()


def test_explain__internal_topics_are_left_out() -> None:
    record = unclean_run(topic="__consumer_offsets")
    assert partitions_of(record) == []
    assert not any("UNCLEAN" in line for line in explain(record))


def test_explain__the_command_shows_a_run_and_the_path_of_its_page(tmp_path: Path) -> None:
    path = write_run(tmp_path, unclean_run())
    result = CliRunner().invoke(command, [str(path), "--no-colour"])
    assert result.exit_code == 0
    assert "because broker 1 fenced: no heartbeat" in result.output
    (path / "timeline.html").unlink()
    drawn = CliRunner().invoke(command, [str(tmp_path), "--html"])
    assert drawn.exit_code == 0
    assert Path(drawn.output.strip()) == path / "timeline.html"
    assert (path / "timeline.html").read_text("utf-8").startswith("<!doctype html>")


def test_explain__the_command_refuses_an_unknown_run_or_partition(tmp_path: Path) -> None:
    path = write_run(tmp_path, unclean_run())
    for words, expected in (
        ([str(tmp_path / "no")], "no such directory"),
        ([str(path), "--partition", "order-0"], "orders-0"),
    ):
        refused = CliRunner().invoke(command, words)
        assert refused.exit_code == 2
        assert expected in refused.output
