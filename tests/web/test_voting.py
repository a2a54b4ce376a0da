"""Votes of a class: one per browser, counts only, and nothing else on that port."""

from __future__ import annotations

import http.client
import json
from typing import Any

from werkzeug.test import Client

from kcluster.web.server import LOOPBACK
from kcluster.web.voting import BURST, MAX_VOTERS, REFILL_PER_S, Vote, VoteApplication, Voting
from tests.web.api_client import serving


class Phone:
    """A browser of one voter."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token, self.cookie = port, token, ""

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=30)
        headers = {"Cookie": self.cookie, "Content-Type": "application/json"}
        text = None if body is None else json.dumps(body)
        try:
            connection.request(method, path, text, headers)
            response = connection.getresponse()
            if cookie := response.getheader("Set-Cookie"):
                self.cookie = cookie.partition(";")[0]
            return response.status, response.read()
        finally:
            connection.close()

    def state(self) -> Any:
        return json.loads(self.ask("GET", f"/{self.token}/state")[1])

    def vote(self, number: int, choice: Any) -> int:
        return self.ask("POST", f"/{self.token}/vote", {"number": number, "choice": choice})[0]


def test_voting__phones_vote_over_tcp_and_can_do_nothing_else() -> None:
    seen: list[int] = []
    voting = Voting(seen.append)
    application = VoteApplication(voting)
    with serving() as (server, _):
        port = server.serve_also(application, LOOPBACK)
        phones = [Phone(port, application.token) for _ in range(2)]
        for phone in phones:
            status, page = phone.ask("GET", f"/{application.token}/")
            assert (status, b"<title>Vote</title>" in page) == (200, True)
        assert phones[0].state()["is_open"] is False
        voting.ask("Who leads?", ("Broker 1", "Broker 2"))
        assert [phones[0].vote(1, 0), phones[1].vote(1, 1), phones[1].vote(1, 0)] == [204] * 3
        assert phones[1].state() == {
            "number": 1,
            "question": "Who leads?",
            "choices": ["Broker 1", "Broker 2"],
            "is_open": True,
            "mine": 0,
        }
        for number, choice in ((1, 2), (1, -1), (0, 0), (2, 0)):
            assert phones[0].vote(number, choice) == 409
        for wrong in ("0", None, [0]):
            assert phones[0].vote(1, wrong) == 400
        assert Phone(port, application.token).vote(1, 0) == 409, "a vote needs a voter's mark"
        assert Phone(port, "wrong").vote(1, 0) == 404
        for path in ("/v1/clusters", f"/v1/clusters?token={application.token}", "/", "/page/c1"):
            assert phones[0].ask("GET", path)[0] == 404
        assert voting.close() == (2, 0)
        assert phones[0].vote(1, 1) == 409, "the answer is shown"
        assert phones[0].state()["mine"] is None, "no vote is kept"
        assert seen == [1, 2, 2]


def test_voting__an_address_has_a_budget_of_requests() -> None:
    now_s = 0.0
    client = Client(VoteApplication(Voting(lambda _: None), lambda: now_s))

    def refused(address: str, count: int) -> int:
        environ = {"REMOTE_ADDR": address}
        answers = [client.get("/", environ_base=environ).status_code for _ in range(count)]
        assert set(answers) <= {404, 429}
        return answers.count(429)

    assert refused("192.0.2.1", BURST + 3) == 3
    assert refused("192.0.2.2", 1) == 0
    now_s = 1.0
    assert refused("192.0.2.1", int(REFILL_PER_S) + 2) == 2


def test_voting__the_number_of_voters_is_bounded() -> None:
    voting = Voting(lambda _: None)
    marks = {voting.enter() for _ in range(MAX_VOTERS)}
    assert len(marks) == MAX_VOTERS
    assert voting.enter() is None
    voting.ask("Who?", ("A", "B"))
    assert not voting.vote("a mark that was not given", Vote(1, 0))
