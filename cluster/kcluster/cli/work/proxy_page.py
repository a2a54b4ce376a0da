"""The page of a proxy's record, drawn again and again while the proxy runs.

Owns: when the page is drawn, the processes that draw it.  Never: draws (runs/page/), writes a row
of the record (proxy/run_files.py).  Kafka: no counterpart.

Drawing reads the whole record, so it happens in a process of low priority: clients do not wait for
it.  A record that takes long is drawn less often, and the drawing takes a tenth of the time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from kcluster.proxy.run_files import MAX_DRAWN_BYTES, RunFiles

REDRAWN_AFTER_S: Final = 5.0
SHARE: Final = 0.1
"""The most of the time that goes into drawing."""
PRIORITY: Final = 10


class PageDrawer:
    """Draws the page of a run whenever there is something new, from the constructor's return until
    `stop`.  `on_first`: called once the page is there; `log`: takes a line for the user when it
    cannot be drawn."""

    def __init__(
        self, files: RunFiles, on_first: Callable[[], None], log: Callable[[str], None]
    ) -> None:
        self._files = files
        self._on_first = on_first
        self._log = log
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._work, name="draws", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Draw no more; a drawing under way is given up, and leaves the older page."""
        self._stopping.set()
        if self._process is not None:
            self._process.kill()
        self._thread.join()

    def _work(self) -> None:
        drawn_bytes, pause_s, problem = -1, 0.0, ""
        while not self._stopping.wait(pause_s):
            pause_s = REDRAWN_AFTER_S
            try:
                size_bytes = self._files.size_bytes()
            except OSError:
                continue  # the directory is gone, which the record itself has reported
            if size_bytes == drawn_bytes or size_bytes > MAX_DRAWN_BYTES:
                continue
            began_s = time.monotonic()
            before, problem = problem, self._draw()
            if problem and problem != before and not self._stopping.is_set():
                self._log(f"the page is not drawn: {problem}")
            if not problem and drawn_bytes < 0:
                self._on_first()
            if not problem:
                drawn_bytes = size_bytes
            pause_s = max(pause_s, (time.monotonic() - began_s) / SHARE)

    def _draw(self) -> str:
        """Draw the page; returns why that was not possible, empty if it was."""
        command = [sys.executable, "-m", "kcluster", "explain", "--html", str(self._files.path)]
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            self._process = process
            os.setpriority(os.PRIO_PROCESS, process.pid, PRIORITY)
            if self._stopping.is_set():  # `stop` may have come before this process
                process.kill()
            _, errors = process.communicate()
        self._process = None
        if not process.returncode:
            return ""
        lines = errors.decode(errors="replace").split("\n")
        return next(filter(None, reversed(lines)), f"exit code {process.returncode}")
