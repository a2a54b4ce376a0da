"""Tasks of asyncio that wait, each with the line of its await.

Owns: finding them.  Never: wakes or ends one.  Kafka: no counterpart; a dump of coroutines.
"""

from __future__ import annotations

import asyncio
import linecache
import sys
from collections.abc import Iterator

from kcluster.testing.callers import frames_awaiting, frames_of, is_library, place_of


def task_lines() -> Iterator[str]:
    """A line for each task of the event loops that run in this process: its name, its place, the
    source of the line that awaits."""
    seen: set[int] = set()
    for outermost in tuple(sys._current_frames().values()):
        for frame in frames_of(outermost):
            loop = frame.f_locals.get("self") if frame.f_code.co_name == "run_forever" else None
            if not isinstance(loop, asyncio.AbstractEventLoop) or id(loop) in seen:
                continue
            seen.add(id(loop))
            for task in sorted(asyncio.all_tasks(loop), key=lambda each: each.get_name()):
                line = _line(task)
                if line:
                    yield line


def _line(task: asyncio.Task[object]) -> str:
    """A task that awaits in users' code; "" for the tasks of libraries."""
    awaiting = [
        frame
        for frame in frames_awaiting(task.get_coro())
        if not is_library(frame.f_code.co_filename)
    ]
    if not awaiting:
        return ""
    frame = awaiting[-1]
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line).strip()
    return (
        f"  {task.get_name()} in {frame.f_code.co_name} awaits at {place_of(file, line)}: {source}"
    )
