"""The description of the API: valid, whole, and true of the answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kcluster.web.api import load_all, modules_of
from kcluster.web.api.openapi import path_of
from kcluster.web.routes import ROUTES
from tests.web.api_client import FAST, Api


@pytest.fixture(scope="module")
def document(api: Api) -> Any:
    return Api(api.port, "").ok("GET", "/openapi.json")


def test_openapi__is_valid_and_has_every_route(document: Any) -> None:
    import openapi_spec_validator

    openapi_spec_validator.validate(document)
    for route in ROUTES:
        operation = document["paths"][path_of(route)][route.method.lower()]
        assert operation["summary"], route.path
        assert str(route.status) in operation["responses"]
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(names) == len(set(names)) == len(ROUTES)


def test_routes__each_is_found_in_the_module_that_its_path_names() -> None:
    load_all()
    for route in ROUTES:
        path = route.path.replace("<id>", "c1")
        module = route.handler.__module__.rpartition(".")[2]
        assert module in modules_of(route.method, path), route.path
    assert modules_of("GET", "/v1/clusters/c1/nothing") == ()


def test_openapi__the_answers_are_as_it_says(document: Any, api: Api, cluster: str) -> None:
    api.ok("POST", f"{cluster}/actions", {"kill": 1, "for": "100ms"})
    paths = [
        "",
        "/actions",
        "/clients",
        "/clock",
        "/events",
        "/replicas/orders-0",
        "/verdict",
        "/at?ms=0",
        "/processed?topic=orders",
    ]
    for path in paths:
        plain = path.partition("?")[0].replace("orders-0", "{partition}")
        described = document["paths"]["/v1/clusters/{id}" + plain]["get"]["responses"]["200"]
        schema = described["content"]["application/json"]["schema"]
        check(document, schema, api.ok("GET", f"{cluster}{path}"))


def test_openapi__requests_that_are_right_are_right_by_it(document: Any) -> None:
    import jsonschema

    body = document["paths"]["/v1/clusters"]["post"]["requestBody"]["content"]["application/json"]
    check(document, body["schema"], {"topology": FAST, "seed": 1, "lease": "5s"})
    with pytest.raises(jsonschema.ValidationError):
        check(document, body["schema"], {"topology": {"brokers": 3, "topic": {}}})
    body = document["paths"]["/v1/clusters/{id}/actions"]["post"]["requestBody"]["content"]
    check(document, body["application/json"]["schema"], {"kill": "leader(orders-0)", "for": "5s"})


def check(document: Any, schema: Any, value: Any) -> None:
    """The value as the schema says, whose references are to the document."""
    import jsonschema

    whole = {"components": document["components"], **json.loads(json.dumps(schema))}
    jsonschema.Draft202012Validator(whole).validate(value)
