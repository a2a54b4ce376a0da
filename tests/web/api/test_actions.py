"""Actions by HTTP, and what follows from them."""

from __future__ import annotations

import json

import pytest

from tests.web.api_client import Api


def test_actions__a_kill_is_answered_when_the_cluster_has_settled(api: Api, cluster: str) -> None:
    leader = api.ok("GET", cluster)["partitions"][0]["leader"]
    killed = api.ok("POST", f"{cluster}/actions", {"kill": "leader(orders-0)"})
    assert killed["action"] == 1
    assert killed["brokers"] == [leader]
    kinds = [event["kind"] for event in killed["events"]]
    assert kinds.index("broker_down") < kinds.index("broker_fenced")
    assert kinds.index("isr_shrunk") < kinds.index("leader_elected")
    undone = api.ok("DELETE", f"{cluster}/actions/1?wait=isr(orders-0)%20=%203&within=20s")
    assert undone["is_undone"]
    again = api.ask("DELETE", f"{cluster}/actions/1")
    assert (again.status, again.value["detail"]) == (409, "action 1 (kill) is undone already")


def test_actions__what_follows_comes_after_the_answer_that_it_is_performed(
    api: Api, cluster: str
) -> None:
    path, stop = f"{cluster}/actions", {"stop": "leader(orders-0)"}  # its leaders move at once
    text = api.ask("POST", path, stop, Accept="application/x-ndjson").body
    parts = [json.loads(line) for line in text.splitlines()]
    kinds = [part["line"].split()[2] if "line" in part else next(iter(part)) for part in parts]
    assert kinds[0] == "controlled_shutdown"
    assert kinds.index("performed") < kinds.index("broker_fenced") < kinds.index("broker_down")
    assert kinds[-1] == "answer"


def test_actions__all_are_undone_at_once(api: Api, cluster: str) -> None:
    api.ok("POST", f"{cluster}/actions?wait=no", {"isolate": 1})
    api.ok("POST", f"{cluster}/actions?wait=no", {"slow": {"nodes": 2, "latency": "1ms"}})
    api.ok("POST", f"{cluster}/actions?wait=no", b"pause: 3\n", Content_Type="application/yaml")
    assert api.ok("GET", cluster)["shapes"]
    healed = api.ok("POST", f"{cluster}/heal?within=30s")
    assert healed["undone"] == [3, 2, 1]
    found = api.ok("GET", cluster)
    assert (found["cuts"], found["shapes"]) == ([], [])
    assert [broker["state"] for broker in found["brokers"]] == ["up"] * 3


def test_actions__for_a_time(api: Api, cluster: str) -> None:
    api.ok("POST", f"{cluster}/actions?wait=no", {"pause": 3, "for": "20ms"})
    api.ok("POST", f"{cluster}/wait", {"until": "event broker_resumed", "since": 0})
    assert api.ok("GET", f"{cluster}/actions")["actions"][0]["is_undone"]


def test_actions__a_random_broker_is_the_one_that_is_named(api: Api, cluster: str) -> None:
    killed = api.ok("POST", f"{cluster}/actions?wait=no", {"kill": "any broker"})
    found = api.ok("GET", cluster)["brokers"]
    assert [broker["id"] for broker in found if broker["state"] == "down"] == killed["brokers"]


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        ({"isolat": 1}, 422, "isolat: no such action or key of a step; did you mean isolate?"),
        ({"isolate": 1, "for": "5"}, 422, "for: 5: 5 what? Write 5ms, 5s or 5m"),
        ({"elect": "orders-0", "for": "5s"}, 422,
         "for: elect cannot be undone, so it takes no for"),
        ({"kill": 1, "at": "5s"}, 422,
         "a single action is performed now; it takes no at, after, when, every"),
        ({"kill": "leader(orders-9)"}, 422, "there is no partition 9 of orders, which has 1"),
        ({"start": 1}, 409, "broker 1 is up"),
    ],
)  # fmt: skip
def test_actions__a_wrong_one(
    api: Api, cluster: str, body: dict[str, object], status: int, detail: str
) -> None:
    answer = api.ask("POST", f"{cluster}/actions", body)
    assert (answer.status, answer.value["detail"]) == (status, detail)
    assert api.ok("GET", f"{cluster}/actions") == {"actions": []}


def test_actions__what_cannot_be_undone_takes_no_for(api: Api, cluster: str) -> None:
    answer = api.ask("POST", f"{cluster}/actions?for=5s", {"elect": "orders-0"})
    assert answer.value["detail"] == "for: elect cannot be undone, so it takes no for"


def test_actions__a_condition_that_does_not_hold_in_time(api: Api, cluster: str) -> None:
    path = f"{cluster}/actions?wait=isr(orders-0)%20=%201&within=200ms"
    answer = api.ask("POST", path, {"kill": "leader(orders-0)"})
    assert answer.status == 408
    assert answer.value["action"] == 1
    assert answer.value["detail"].startswith("isr(orders-0) = 1 does not hold after 0.2 s: it is ")
    answer = api.ask("POST", f"{cluster}/wait", {"until": "isr(orders-0)", "within": "1s"})
    assert answer.status == 422
