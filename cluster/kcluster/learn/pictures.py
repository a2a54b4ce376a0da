"""The logs of a partition's replicas as an SVG picture, for the pages of the course.

Owns: its layout and colours.  Never: reads a cluster; it draws values. Kafka: no counterpart.

A row per replica, a cell per record (or per few records).  A cell's colour and hatching stand for
the leader epoch that wrote it, so that the picture can be read without telling colours apart; the
thick line is the high watermark, the crown marks the leader, a dashed frame a replica out of the
ISR.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final
from xml.sax.saxutils import escape

from kcluster.operations.logs import PartitionLogs, ReplicaLog
from kcluster.runs.bars import offsets_per_cell

_LABEL, _ROW, _CELL, _HEIGHT, _TOP = 264, 30, 11, 18, 34
_HATCHES: Final = (
    "", "M0 18L11 0", "M0 6H11M0 12H11", "M5.5 0V18", "M0 0L11 18", "M0 9H11M5.5 0V18"
)  # fmt: skip
_COLOURS: Final = ("#9ecae9", "#f5b971", "#a6d8a8", "#d7b5d8", "#f2a7a0", "#cfcfcf")
"""Colours by leader epoch, in rotation; the first ones differ in brightness, too."""
_STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1b1f24}.hw{stroke:#1b1f24;stroke-width:3}"
    ".cell,.hatch{stroke:#1b1f24;fill:none}.cell{stroke-width:.6}.hatch{stroke-width:.9}"
    ".out{fill:none;stroke:#8a8f98;stroke-dasharray:4 3}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e6e6}.hw{stroke:#fff}.out{stroke:#9aa0a8}}"
)


def logs_picture(logs: PartitionLogs) -> str:
    """The picture, one SVG document that ends with a line break."""
    replicas = logs.replicas
    start = min((replica.log_start_offset for replica in replicas), default=0)
    end = max((replica.log_end_offset for replica in replicas), default=0)
    per_cell = offsets_per_cell(start, end)
    cells = -(-(end - start) // per_cell)
    epochs = sorted({epoch for replica in replicas for epoch, _ in replica.epochs})
    width = _LABEL + max(cells, 20) * _CELL + 130
    height = _TOP + len(replicas) * _ROW + 34
    body = [
        f'<text x="8" y="20">{escape(head_of_logs(logs))}</text>',
        *(
            line
            for row, replica in enumerate(replicas)
            for line in _row(replica, logs, _TOP + row * _ROW, (start, per_cell, cells))
        ),
        *_legend(epochs, per_cell, _TOP + len(replicas) * _ROW),
    ]
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
    return "\n".join(
        [
            f'{svg} width="{width}" height="{height}">',
            f"<title>{escape(spoken(logs))}</title><style>{_STYLE}</style>",
            f"<defs>{''.join(_patterns(epochs))}</defs>",
            *body,
            "</svg>\n",
        ]
    )


def head_of_logs(logs: PartitionLogs) -> str:
    """The title of a picture of logs: `orders-0: leader 2, epoch 1, ISR 2, 3`."""
    leader = "none" if logs.leader is None else str(logs.leader)
    isr = ", ".join(map(str, logs.isr)) or "empty"
    return f"{logs.topic}-{logs.partition}: leader {leader}, epoch {logs.leader_epoch}, ISR {isr}"


def spoken(logs: PartitionLogs) -> str:
    """The picture in words, for readers who cannot see it."""
    rows = (
        f"broker {x.broker}, {x.standing}, log end {x.log_end_offset}"
        + ("" if x.high_watermark is None else f", high watermark {x.high_watermark}")
        for x in logs.replicas
    )
    return f"{head_of_logs(logs)}; {'; '.join(rows)}"


def _row(
    replica: ReplicaLog, logs: PartitionLogs, y: int, scale: tuple[int, int, int]
) -> Iterator[str]:
    start, per_cell, cells = scale
    crown = "♛ " if replica.broker == logs.leader else ""
    text_y = y + _HEIGHT - 4
    yield f'<text x="8" y="{text_y}">{crown}broker {replica.broker}</text>'
    yield f'<text x="84" y="{text_y}">{escape(replica.standing)}</text>'
    drawn = [
        (_epoch_at(replica.epochs, offset), cell)
        for cell in range(cells)
        if replica.log_start_offset <= (offset := start + cell * per_cell) < replica.log_end_offset
    ]
    for epoch, run in groupby(drawn, key=itemgetter(0)):
        places = [cell for _, cell in run]
        x = places[0] * _CELL
        end = min((places[-1] + 1) * _CELL, (replica.log_end_offset - start) * _CELL // per_cell)
        yield (
            f'<rect x="{_LABEL + x}" y="{y}" width="{end - x}" height="{_HEIGHT}"'
            f' fill="url(#e{epoch})"/>'
        )
    if replica.broker not in logs.isr and replica.log_end_offset > start:
        used = (replica.log_end_offset - start) * _CELL // per_cell
        yield (
            f'<rect class="out" x="{_LABEL - 3}" y="{y - 3}" width="{used + 6}"'
            f' height="{_HEIGHT + 6}"/>'
        )
    mark = replica.high_watermark
    if mark is not None:
        x = _LABEL + (mark - start) * _CELL // per_cell
        yield f'<line class="hw" x1="{x}" x2="{x}" y1="{y - 4}" y2="{y + _HEIGHT + 4}"/>'
    ends = f"end {replica.log_end_offset}" + ("" if mark is None else f", hw {mark}")
    yield f'<text x="{_LABEL + max(cells, 20) * _CELL + 10}" y="{text_y}">{ends}</text>'


def _epoch_at(epochs: Sequence[tuple[int, int]], offset: int) -> int:
    at = bisect_right(epochs, offset, key=lambda entry: entry[1])
    return epochs[max(0, at - 1)][0] if epochs else 0


def _patterns(epochs: Sequence[int]) -> Iterator[str]:
    for epoch in epochs or [0]:
        colour, hatch = _COLOURS[epoch % len(_COLOURS)], _HATCHES[epoch % len(_HATCHES)]
        lines = f'<path class="hatch" d="{hatch}"/>' if hatch else ""
        yield (
            f'<pattern id="e{epoch}" x="{_LABEL}" y="{_TOP}" width="{_CELL}" height="{_ROW}"'
            f' patternUnits="userSpaceOnUse"><rect width="{_CELL}" height="{_HEIGHT}"'
            f' fill="{colour}"/>{lines}<path class="cell" d="M0 0H{_CELL}V{_HEIGHT}H0Z"/></pattern>'
        )


def _legend(epochs: Sequence[int], per_cell: int, y: int) -> Iterator[str]:
    x = _LABEL
    for epoch in epochs:
        yield (
            f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_HEIGHT}" fill="url(#e{epoch})"/>'
            f'<text x="{x + 16}" y="{y + 14}">epoch {epoch}</text>'
        )
        x += 8 * _CELL
    each = "a record" if per_cell == 1 else f"{per_cell} records"
    yield (
        f'<line class="hw" x1="{x + 4}" x2="{x + 4}" y1="{y - 3}" y2="{y + 21}"/>'
        f'<text x="{x + 12}" y="{y + 14}">high watermark; a cell is {each}</text>'
    )
