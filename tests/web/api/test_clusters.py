"""Clusters by HTTP: create, look at, delete; what is wrong with a request."""

from __future__ import annotations

import json
import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from tests.web.api_client import FAST, Api, serving

TOO_LONG = "not JSON that can be read: a number of more than 4300 digits"


def test_clusters__ready_when_answered(api: Api) -> None:
    answer = api.ask("POST", "/v1/clusters", {"topology": FAST, "seed": 7})
    assert answer.status == 201
    found = answer.value
    assert answer.headers["Location"] == f"/v1/clusters/{found['id']}"
    assert [broker["state"] for broker in found["brokers"]] == ["up"] * 3
    assert found["partitions"][0]["isr"] == found["partitions"][0]["replicas"]
    for address in found["bootstrap"].split(","):
        host, _, port = address.partition(":")
        socket.create_connection((host, int(port)), 5).close()
    assert api.ok("DELETE", answer.headers["Location"]) == {
        "id": found["id"], "run": None, "outcome": None, "reason": None,
    }  # fmt: skip
    assert api.ask("GET", answer.headers["Location"]).status == 404


def test_clusters__yaml_is_the_topology(api: Api) -> None:
    yaml = b"brokers: 2\nprofile: fast\ntopics: {x: {partitions: 3}}\nconfig: {num.io.threads: 9}\n"
    found = api.ok("POST", "/v1/clusters", yaml, Content_Type="application/yaml")
    assert len(found["brokers"]) == 2
    assert len(found["partitions"]) == 3
    assert found["without_effect"] == ["num.io.threads"]
    listed = api.ok("GET", "/v1/clusters")["clusters"]
    assert {"id": found["id"], "name": "kcluster", "bootstrap": found["bootstrap"], "lease": None}\
        in listed  # fmt: skip
    api.ok("DELETE", f"/v1/clusters/{found['id']}")


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"security": {"tls": {"files": "DIR"}}}, "security.tls.files"),
        ({"security": {"tls": {"keystore": "DIR/a.pem"}}}, "security.tls.keystore"),
        (
            {"security": {"tls": "auto"}, "config": {"ssl.truststore.location": "DIR/a.pem"}},
            "config.ssl.truststore.location",
        ),
    ],
)
def test_clusters__requests_name_no_files_of_the_server(
    api: Api, tmp_path: Path, more: dict[str, Any], path: str
) -> None:
    """A token breaks clusters; it neither reads nor writes the files of whoever runs the server."""
    folder = tmp_path / "files"
    topology = {**FAST, "listeners": {"CLIENT": {"protocol": "SSL"}}, **more}
    body = json.loads(json.dumps(topology).replace("DIR", str(folder)))
    for sent, at in (
        ({"topology": body}, f"topology.{path}"),
        ({"topology": json.dumps(body)}, f"topology.{path}"),
    ):
        answer = api.ask("POST", "/v1/clusters", sent)
        assert answer.status == 422
        (problem,) = answer.value["problems"]
        assert problem["path"] == at
        assert problem["text"].startswith("a request may not name files of the server")
    answer = api.ask("POST", "/v1/clusters", json.dumps(body).encode(), Content_Type="text/yaml")
    assert answer.status in (415, 422)
    assert not folder.exists()


def test_clusters__every_problem_of_a_topology_with_its_place(api: Api) -> None:
    body = b'{"topology": {"brokers": 3,\n "topics": {"orders": {"partition": 3}},\n "profle": 1}}'
    answer = api.ask("POST", "/v1/clusters", body)
    assert answer.status == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.value["problems"] == [
        {
            "path": "topology.topics.orders.partition",
            "text": "no such key of a topic; did you mean partitions?",
            "line": 2,
            "column": 24,
        },
        {
            "path": "topology.profle",
            "text": "no such key of a topology; did you mean profile?",
            "line": 3,
            "column": 2,
        },
    ]


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        (b'{"topology" 1}', 400, "line 1, column 13: not JSON: Expecting ':' delimiter"),
        (b'{"seed": NaN}', 400, "not JSON: NaN is no number there"),
        (b"[" * 100_000, 400, "not JSON that can be read: nested too deeply"),
        (b'{"a": "\xff"}', 400, "line 1, column 8: not UTF-8"),
        (b"[]", 400, "the body must be a JSON object"),
        (b'{"seed": ' + b"9" * 5_000 + b"}", 400, TOO_LONG),
        (b'{"\\ud800": 1}', 400, "not text: \\ud800 is half of a character"),
        (b'{"topology": "\\uDFFF"}', 400, "not text: \\udfff is half of a character"),
        (b'{"sed": 1}', 422, "sed: no such key; did you mean seed?"),
        (b'{"seed": -1}', 422, "seed: Expected `int` >= 0"),
        (b'{"lease": "60"}', 422, "lease: 60 what? Write 60ms, 60s or 60m"),
        (b'{"lease": "5ms"}', 422, "lease: 5ms: at least 1s"),
        (
            b'{"topology": "broker: 1"}',
            422,
            "broker: no such key of a topology; did you mean brokers?; brokers: missing; a number"
            " (`brokers: 3`) or a list of brokers",
        ),
    ],
)
def test_clusters__a_wrong_body(api: Api, body: bytes, status: int, detail: str) -> None:
    answer = api.ask("POST", "/v1/clusters", body)
    assert (answer.status, answer.value["detail"]) == (status, detail)


@pytest.mark.parametrize("place", ["", "topology"])
def test_clusters__many_wrong_keys_cost_little(api: Api, place: str) -> None:
    """As for files, a hundred problems are listed."""
    keys: dict[str, Any] = {f"brokres_{number}": 1 for number in range(40_000)}
    began_s = time.process_time()
    answer = api.ask("POST", "/v1/clusters", {place: keys} if place else keys)
    assert time.process_time() - began_s < 2
    assert answer.status == 422
    assert len(answer.value["problems"]) == 100
    assert len(answer.body) < 50_000
    assert re.search(r"and \d+ more problems$", answer.value["detail"])


def test_clusters__more_yaml_than_a_file_may_have(api: Api) -> None:
    large = b"# " + b"x" * (512 * 1024)
    assert api.ask("POST", "/v1/clusters", large, Content_Type="application/yaml").status == 413


def test_clusters__only_json_and_yaml(api: Api) -> None:
    answer = api.ask("POST", "/v1/clusters", b"{}", Content_Type="text/plain")
    assert answer.status == 415
    large = b'{"seed": 1' + b" " * (1 << 20) + b"}"
    assert api.ask("POST", "/v1/clusters", large).status == 413


def test_clusters__a_wrong_id_and_a_wrong_method(api: Api, cluster: str) -> None:
    id = cluster.rpartition("/")[2]
    answer = api.ask("GET", f"{cluster}0")
    assert (answer.status, answer.value["detail"]) == (
        404,
        f"{id}0: no such cluster; did you mean {id}?",
    )
    answer = api.ask("PATCH", cluster)
    assert (answer.status, answer.headers["Allow"]) == (405, "DELETE, GET, HEAD")
    assert api.ask("GET", "/v1/cluster").status == 404
    answer = api.ask("DELETE", f"{cluster}?oot=x")
    assert answer.value["problems"][0]["text"] == "no such parameter; there are out"


def test_clusters__only_with_the_token_and_by_its_own_name(api: Api) -> None:
    """A page of another site has no token, and a rebound name is not ours."""
    stranger = Api(api.port, "guessed")
    assert stranger.ask("GET", "/v1/clusters").status == 401
    assert stranger.ask("GET", f"/v1/clusters?token={api.token}", Authorization="").status == 200
    assert api.ask("GET", "/v1/clusters", Host="evil.example").status == 421
    assert api.ask("GET", "/v1/clusters", Host="192.168.1.7").status == 421
    assert api.ask("GET", "/v1/clusters", Host=f"localhost:{api.port}").status == 200
    assert "Access-Control-Allow-Origin" not in api.ask("OPTIONS", "/v1/clusters").headers


def test_clusters__names_that_are_allowed() -> None:
    with serving(names=("kafka.test",)) as (_, api):
        assert api.ask("GET", "/v1/clusters", Host="kafka.test:80").status == 200


def test_query__raw_bytes_are_refused(api: Api) -> None:
    head = (
        f"GET /v1/clusters?x=\x80 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {api.token}"
    )
    with socket.create_connection(("127.0.0.1", api.port), timeout=10) as sock:
        sock.sendall(f"{head}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        answer = b"".join(iter(lambda: sock.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"byte 3 of the query is not UTF-8" in answer
