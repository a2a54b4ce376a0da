"""A headless Chromium, spoken to through two pipes in its DevTools protocol.

Owns: its process, one page at a time, running script there.  Never: knows what a page is about.

Not `--dump-dom`: it prints the document before frames were drawn.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
IN_CHROMIUM = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian's package: chromium)"),
    pytest.mark.long,
]
"""The marks of tests with the fixture `browser`."""
ANSWER_S = 40.0
_WATCH = """
window.wrong = [];
addEventListener("error", (event) => wrong.push(event.message));
addEventListener("unhandledrejection", (event) => wrong.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => wrong.push(event.violatedDirective));
"""


class Browser:
    """Messages are JSON, each ended by a zero byte; it reads file 3 and writes file 4."""

    def __init__(self, program: str, profile: Path) -> None:
        read_end, self._write = os.pipe()
        self._read, write_end = os.pipe()
        command = [
            program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={profile}",
            "--window-size=1400,900",
            "--remote-debugging-pipe",
            "about:blank",
        ]
        # Far from 3 and 4, so that neither is overwritten before it is copied there.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in (read_end, write_end)]

        def place_ends() -> None:
            for end, wanted in zip(ends, (3, 4), strict=True):
                os.dup2(end, wanted)

        self._process = subprocess.Popen(
            command,
            preexec_fn=place_ends,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in ends:
            os.close(end)
        os.close(read_end)
        os.close(write_end)
        self._numbers = count(1)
        self._answer_s = ANSWER_S
        self._unread = b""
        # One page for all that is looked at: a new one is a new process.
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Page.enable", self._session)
        self._call("Page.addScriptToEvaluateOnNewDocument", self._session, source=_WATCH)

    def close(self) -> None:
        self._call("Browser.close")
        self._process.wait(20)
        os.close(self._write)
        os.close(self._read)

    def look(
        self,
        url: str,
        steps: str,
        size: tuple[int, int, int] = (1_400, 900, 1),
        answer_s: float = ANSWER_S,
    ) -> Any:
        """Open a page, run the body of an async function there; its result, once the page is
        loaded.  `size`: width and height in CSS pixels, and how many screen pixels each takes: half
        the size with 2 is the same window zoomed to 200 %; `answer_s`: how long the function may
        take.  A script that fails, there or here, is an AssertionError."""
        session = self._session
        self._answer_s = answer_s
        width, height, scale = size
        self._call(
            "Emulation.setDeviceMetricsOverride",
            session,
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        # From the same file, a page with another anchor would be no new document.
        self._open("about:blank")
        self._open(url)
        result = self._call(
            "Runtime.evaluate",
            session,
            expression=f"(async () => {{ {steps} }})()",
            awaitPromise=True,
            returnByValue=True,
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        wrong = self._call("Runtime.evaluate", session, expression="wrong", returnByValue=True)
        assert wrong["result"]["value"] == []
        return result["result"].get("value")

    def _open(self, url: str) -> None:
        self._call("Page.navigate", self._session, url=url)
        self._event("Page.loadEventFired", self._session)

    def _call(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])

    def _event(self, method: str, session: str) -> None:
        while True:
            message = self._message()
            if (message.get("method"), message.get("sessionId")) == (method, session):
                return

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], self._answer_s)
            assert ready, f"Chromium sent nothing for {self._answer_s:g} s"
            more = os.read(self._read, 1 << 20)
            assert more, "Chromium went away"
            self._unread += more
        message, _, self._unread = self._unread.partition(b"\0")
        return dict(json.loads(message))
