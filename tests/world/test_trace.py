"""The trace of a world: packets become lines, a frame each."""

from __future__ import annotations

from msgspec import Struct

from kcluster.world.trace import WireTrace, compare, difference_lines


class Connection(Struct):
    number: int = 3
    broker_id: int = 1
    client_id: str | None = "billing"


REQUEST = b"\0\0\0\x0c" + b"\0\x12\0\0" + b"\0\0\0\x07" + b"\0\x02me"
"""ApiVersions v0 with correlation id 7."""
ANSWER = b"\0\0\0\x06" + b"\0\0\0\x07" + b"\0\0"


def test_trace__a_line_for_each_frame_however_its_packets_are_cut() -> None:
    whole_lines: list[str] = []
    cut_lines: list[str] = []
    whole, cut = WireTrace(1_000_000, whole_lines.append), WireTrace(1_000_000, cut_lines.append)
    whole.on_packet(1_000_500, Connection(), True, REQUEST + REQUEST)
    whole.on_packet(1_002_000, Connection(), False, ANSWER)
    cut.on_packet(1_000_100, Connection(), True, REQUEST[:5])
    cut.on_packet(1_000_500, Connection(), True, REQUEST[5:] + REQUEST)
    cut.on_packet(1_001_000, Connection(), False, ANSWER[:3])
    cut.on_packet(1_002_000, Connection(), False, ANSWER[3:])

    assert cut_lines == whole_lines
    assert (cut.hash, cut.count) == (whole.hash, 3)
    assert [line.rpartition(" ")[0] for line in whole_lines] == [
        "500 > ApiVersions v0 broker 1 connection 3 billing 16 bytes",
        "500 > ApiVersions v0 broker 1 connection 3 billing 16 bytes",
        "2000 < ApiVersions v0 broker 1 connection 3 billing 10 bytes",
    ]


def test_trace__what_is_no_frame_is_shown_and_what_has_no_end_is_not_lost() -> None:
    lines: list[str] = []
    trace = WireTrace(0, lines.append)
    trace.on_packet(10, Connection(client_id=None), True, b"\xff\xff\xff\xff GET / HTTP")
    trace.on_packet(20, Connection(number=4), False, b"\0\0")
    trace.end(30, 17, "0.5")

    assert [
        line.partition(" bytes")[0] if line[0] == "t" else line.rpartition(" bytes ")[0] or line
        for line in lines
    ] == ["10 > bytes broker 1 connection 3 - 15", "the end < connection 4 2", "30 end 17 0.5"]


def test_compare__shows_the_first_line_that_differs_and_its_neighbours() -> None:
    first = ["a", "b", "c", "d", "e", "f"]

    assert compare(first, list(first)) is None
    difference = compare(first, ["a", "b", "c", "x"])
    assert difference is not None
    lines = list(difference_lines(difference))
    assert lines[0] == "not deterministic: the traces differ from line 4 on"
    assert lines[1:7] == ["    b", "    c", "  1 d", "  1 e", "  1 f", "  2 x"]
    assert any("__hash__" in line for line in lines[7:])
    ended = compare(first, first[:2])
    assert ended is not None
    assert "  2 (the trace ends here)" in difference_lines(ended)
