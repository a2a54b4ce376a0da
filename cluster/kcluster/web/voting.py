"""Votes of a class: a page for phones on the same network, on which they can only vote.

Owns: the votes on the present question, the small WSGI application of the page.  Never: shares a
port or a token with the API, keeps a name or an address with a vote, draws.
Kafka: no counterpart.

The page is at /TOKEN/.  Each browser gets a random mark in a cookie, and so has one vote, which
it can change until the answer is shown.  The marks are forgotten with the question.  A class is on
a network with others: each address has a budget of requests, and the number of voters is bounded.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from werkzeug.wrappers import Request, Response

from kcluster.web.problems import RefusedRequest
from kcluster.web.routes import HTML, JSON

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

MAX_VOTERS: Final = 1_000
"""The most browsers that get a vote in a lesson."""
MAX_BODY_BYTES: Final = 200
BURST: Final = 60
"""The requests that an address may send at once."""
REFILL_PER_S: Final = 10.0
"""The requests that an address may send in each second after a burst."""
MAX_ADDRESSES: Final = 2_000
_COOKIE: Final = "voter"
_PAGE: Final = Path(__file__).with_name("vote_page.html")
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": _POLICY,
}


class VoteState(Struct, frozen=True):
    """What a phone shows.  `number`: the number of the question; `mine`: the choice of this phone;
    `is_open`: whether it can vote."""

    number: int
    question: str
    choices: tuple[str, ...]
    is_open: bool
    mine: int | None


class Vote(Struct, forbid_unknown_fields=True):
    """A vote: the number of the question, so that a late vote does not count for the next one, and
    the choice, from 0."""

    number: int
    choice: int


class Voting:
    """The votes on the present question.  To be used from any thread.  `on_vote`: called after each
    vote with the number of voters."""

    def __init__(self, on_vote: Callable[[int], None]) -> None:
        self._lock = threading.Lock()
        self._on_vote = on_vote
        self._voters: set[str] = set()
        self._choices: tuple[str, ...] = ()
        self._question = ""
        self._number = 0
        self._is_open = False
        self._votes: dict[str, int] = {}

    def ask(self, question: str, choices: tuple[str, ...]) -> None:
        """Open the vote on a question."""
        with self._lock:
            self._number += 1
            self._question, self._choices, self._is_open = question, choices, True
            self._votes.clear()

    def close(self) -> tuple[int, ...]:
        """Close the vote; the number of votes for each choice.  The marks of the votes are
        forgotten."""
        with self._lock:
            counts = [0] * len(self._choices)
            for choice in self._votes.values():
                counts[choice] += 1
            self._is_open = False
            self._votes.clear()
            return tuple(counts)

    def enter(self) -> str | None:
        """A new voter's mark; None if there are too many."""
        with self._lock:
            if len(self._voters) >= MAX_VOTERS:
                return None
            mark = secrets.token_urlsafe(12)
            self._voters.add(mark)
            return mark

    def knows(self, mark: str) -> bool:
        """Whether this mark was given to a voter."""
        with self._lock:
            return mark in self._voters

    def vote(self, mark: str, vote: Vote) -> bool:
        """Count a vote, in place of this voter's earlier one; returns whether it counts."""
        with self._lock:
            is_current = self._is_open and vote.number == self._number
            is_choice = 0 <= vote.choice < len(self._choices)
            if not (is_current and is_choice and mark in self._voters):
                return False
            self._votes[mark] = vote.choice
            count = len(self._votes)
        self._on_vote(count)
        return True

    def state(self, mark: str) -> VoteState:
        """The state for one phone."""
        with self._lock:
            mine = self._votes.get(mark)
            return VoteState(self._number, self._question, self._choices, self._is_open, mine)


class VoteApplication:
    """The page of a vote, its state and its votes, below `/TOKEN/`; everything else is 404."""

    def __init__(self, voting: Voting, now_s: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_urlsafe(9)
        self._voting = voting
        self._now_s = now_s
        self._budgets: dict[str, tuple[float, float]] = {}
        """(number of requests that an address may still send, time of that number), by address."""

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        request = Request(environ)
        response = self._answer(request)
        response.headers.extend(_HEADERS)
        return response(environ, start)

    def _answer(self, request: Request) -> Response:
        if not self._has_budget(request.remote_addr or ""):
            return Response("too many requests", HTTPStatus.TOO_MANY_REQUESTS)
        token, slash, path = request.path.removeprefix("/").partition("/")
        if not (slash and hmac.compare_digest(token.encode(), self.token.encode())):
            return Response("no such page", HTTPStatus.NOT_FOUND)
        mark = request.cookies.get(_COOKIE, "")
        match request.method, path:
            case "GET", "":
                return self._page(mark)
            case "GET", "state":
                return Response(msgspec.json.encode(self._voting.state(mark)), content_type=JSON)
            case "POST", "vote":
                return self._vote(request, mark)
        return Response("no such page", HTTPStatus.NOT_FOUND)

    def _page(self, mark: str) -> Response:
        response = Response(_PAGE.read_bytes(), content_type=f"{HTML}; charset=utf-8")
        if not self._voting.knows(mark):
            entered = self._voting.enter()
            if entered is None:
                return Response("too many voters", HTTPStatus.SERVICE_UNAVAILABLE)
            path = f"/{self.token}/"
            response.set_cookie(_COOKIE, entered, path=path, httponly=True, samesite="Strict")
        return response

    def _vote(self, request: Request, mark: str) -> Response:
        length = request.content_length or 0
        if request.mimetype != JSON or not 0 < length <= MAX_BODY_BYTES:
            return Response("send a vote as JSON", HTTPStatus.BAD_REQUEST)
        try:
            vote = msgspec.json.decode(request.environ["wsgi.input"].read(length), type=Vote)
        except (msgspec.DecodeError, RefusedRequest):  # no vote, or too slow a body
            return Response("no vote", HTTPStatus.BAD_REQUEST)
        if not self._voting.vote(mark, vote):
            return Response("this vote does not count", HTTPStatus.CONFLICT)
        return Response(status=HTTPStatus.NO_CONTENT)

    def _has_budget(self, address: str) -> bool:
        """Whether an address may send one more request now."""
        now_s = self._now_s()
        left, at_s = self._budgets.pop(address, (float(BURST), now_s))
        left = min(float(BURST), left + (now_s - at_s) * REFILL_PER_S)
        if len(self._budgets) >= MAX_ADDRESSES:
            del self._budgets[next(iter(self._budgets))]
        self._budgets[address] = (max(0.0, left - 1), now_s)
        return left >= 1
