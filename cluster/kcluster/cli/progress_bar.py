"""A progress bar on a terminal.

Owns: the bar and its columns.  Never: decides what is counted, or whether there is a bar.
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.plain_output import plain_console

if TYPE_CHECKING:
    from rich.progress import Progress

BAR: Final = "bar"
COUNT: Final = "count"
TIME_LEFT: Final = "time left"


def progress_bar(*columns: str, to_stderr: bool = True) -> Progress:
    """A bar that vanishes at its end.  `columns`: BAR, COUNT (m of n), TIME_LEFT, or the form of a
    text such as `{task.description}`."""
    from rich import progress

    kinds = {
        BAR: progress.BarColumn,
        COUNT: progress.MofNCompleteColumn,
        TIME_LEFT: progress.TimeRemainingColumn,
    }
    made = [kinds[each]() if each in kinds else progress.TextColumn(each) for each in columns]
    return progress.Progress(*made, transient=True, console=plain_console(to_stderr=to_stderr))
