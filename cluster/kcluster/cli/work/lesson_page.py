"""The work of `kcluster learn --page`: a lesson beside a live cluster and its page.

Owns: the cluster and the server of the lesson, the address of the vote, the queue of answers from
the terminal and from the page.  Never: asks a question (learn.py), counts a vote
(web/voting.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import io
import queue
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import segno

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.cli.work.learn import LessonStage, is_terminal, tell
from kcluster.config.files.numbers import whole_number
from kcluster.learn.lesson import Lesson
from kcluster.learn.live import LiveLesson
from kcluster.learn.playing import LessonPlayed, PartPlayed
from kcluster.operations.errors import ClusterError
from kcluster.web.held import HeldCluster
from kcluster.web.lesson_card import Awaited, LessonCard, VotePlace
from kcluster.web.server import WebServer
from kcluster.web.voting import VoteApplication, Voting

ANYWHERE: Final = "0.0.0.0"
_ELSEWHERE: Final = ("192.0.2.1", 9)
"""An address that RFC 5737 reserves for documentation; no packet is sent to it."""


def tell_with_page(played: LessonPlayed, shows_answers: bool, vote_host: str | None) -> None:
    """Tell a lesson, and play it on the page.  `vote_host`: the name or address by which phones
    reach this machine, "" for its address on the network; None: no vote."""
    try:
        with LiveLesson(played.lesson) as live:
            server = WebServer(can_create=False)
            held = HeldCluster(_id_of(played.lesson), live.cluster, stop=_nothing)
            server.clusters.add(held)
            server.start()
            try:
                print(f"The cluster is live; open its page: {server.page_url(held.id)}", flush=True)
                stage = _PageStage(played, held, live)
                if vote_host is not None:
                    stage.open_votes(server, vote_host or _own_address())
                tell(played, shows_answers, LessonStage(live.play, stage.show, stage.line))
            finally:
                server.stop()
    except ClusterError as error:
        fail(CommandError(str(error)))


class Inputs:
    """The answers of the terminal and of the page, in one queue.  To be used from any thread.

    The first one to a question counts: a second one, by the page and the terminal at once, is left
    out.  `in_advance`: the lines of a pipe may come before their questions.
    """

    def __init__(self) -> None:
        self._queue: queue.Queue[tuple[int | None, str | None]] = queue.Queue()
        self._asked = 0
        """The number of questions and pauses so far."""

    def ask(self) -> None:
        """Begin a question or a pause."""
        self._asked += 1

    def put(self, line: str | None, *, in_advance: bool = False) -> None:
        """Add a line for the present question; None: there will be no more lines."""
        self._queue.put((None if line is None or in_advance else self._asked, line))

    def next(self) -> str | None:
        """Wait for the line of the present question; None: there are no more lines."""
        while True:
            asked, line = self._queue.get()
            if asked in (None, self._asked):
                return line


class _PageStage:
    """The page's part of a lesson: its cards, its answers, and the votes."""

    def __init__(self, played: LessonPlayed, held: HeldCluster, live: LiveLesson) -> None:
        self._played, self._live = played, live
        self._cards = held.lessons
        self._voting: Voting | None = None
        self._vote_at: VotePlace | None = None
        self._inputs = Inputs()
        self._is_reading = self._has_ended = False
        self._cards.on_answer = lambda choice: self._inputs.put(
            "" if choice is None else str(choice + 1)
        )

    def open_votes(self, server: WebServer, host: str) -> None:
        """Serve the page of the vote on the network."""
        self._voting = Voting(lambda voters: self._cards.change(voters=voters))
        application = VoteApplication(self._voting)
        port = server.serve_also(application, ANYWHERE)
        self._vote_at = vote_place(f"http://{host}:{port}/{application.token}/")
        print(f"Phones on this network vote at {self._vote_at.url}", flush=True)

    def show(self, number: int, each: PartPlayed, shows_answer: bool) -> None:
        """Show a part on the page: before it is played, or with the answer."""
        part, ask = each.part, each.part.ask
        parts = self._played.lesson.parts
        card = LessonCard(
            lesson=self._played.lesson.title,
            part=part.title,
            text=part.text,
            question="" if ask is None else ask.question.strip(),
            choices=() if ask is None else tuple(choice.text for choice in ask.choices),
            from_s=parts[number - 2].until_ms / 1000 if number > 1 else 0,
            until_s=part.until_ms / 1000,
            vote_at=self._vote_at if ask is not None else None,
        )
        if not shows_answer:
            if self._voting is not None and ask is not None:
                self._voting.ask(card.question, card.choices)
            self._cards.show(card, self._live.cluster.clock().now_ms)
            return
        votes = () if self._voting is None or ask is None else self._voting.close()
        self._cards.change(
            right=each.right,
            because="" if ask is None else ask.because,
            after=part.after,
            votes=votes,
            voters=sum(votes),
            awaits=Awaited.NOTHING,
        )

    def line(self, prompt: str, is_answer: bool) -> str:
        """The next line of the terminal, or the page's answer."""
        if self._has_ended:
            return ""
        print(prompt, end="", flush=True)
        self._inputs.ask()
        if not self._is_reading:
            self._is_reading = True
            threading.Thread(target=self._read, name="terminal", daemon=True).start()
        self._cards.change(awaits=Awaited.ANSWER if is_answer else Awaited.GO_ON, given=None)
        line = self._inputs.next()
        self._cards.change(awaits=Awaited.NOTHING)
        if line is None:
            self._has_ended = True
            print()
            return ""
        number = whole_number(line) if is_answer else None
        if number is not None:
            self._cards.change(given=number - 1)
        return line

    def _read(self) -> None:
        """Read the lines of the terminal, or of a pipe, to the end."""
        in_advance = not is_terminal()
        with suppress(OSError):  # the terminal was closed
            for line in _input_lines():
                self._inputs.put(line.strip(), in_advance=in_advance)
        self._inputs.put(None)


def _input_lines() -> Iterator[str]:
    """The lines of the standard input.  Not by sys.stdin: its lock, held by a thread that waits,
    keeps the process from ending."""
    if sys.stdin is None:  # it was closed before the process began
        return
    try:
        number = sys.stdin.fileno()
    except io.UnsupportedOperation:  # lines in memory
        yield from sys.stdin
        return
    with open(number, encoding="utf-8", errors="replace", closefd=False) as lines:
        yield from lines


def _id_of(lesson: Lesson) -> str:
    """The cluster's id on the page: a teacher's own lesson is called by its folder, whose name may
    be empty or anything else."""
    return lesson.name if lesson.number else "lesson"


def vote_place(url: str) -> VotePlace:
    """The address of a vote with its QR code."""
    rows = [bytes(row) for row in segno.make(url, error="m", micro=False).matrix]
    path = "".join(
        f"M{x} {y}h1v1h-1z"
        for y, row in enumerate(rows)
        for x, is_dark in enumerate(row)
        if is_dark
    )
    return VotePlace(url, path, len(rows))


def _own_address() -> str:
    """The address of this machine on its network; the loopback address without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect(_ELSEWHERE)
        except OSError:
            return "127.0.0.1"
        address: str = asked.getsockname()[0]
        return address


def _nothing() -> None:
    """Do nothing: the lesson ends its cluster itself."""
