"""What clients may ask of the controller; brokers' own requests are not checked."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.controller.security.authorization import GUARDS
from kcluster.events.security import AuthorizationDenied
from kcluster.metadata.records import Envelope, RequestDenied
from kcluster.principals import USER_TYPE, ClientIdentity, Principal
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, VERSIONS
from kcluster.protocol.errors import ErrorCode
from kcluster.security.authorizer import STANDARD_AUTHORIZER
from tests.controller.harness import Controller
from tests.protocol.generated import Generator

KEYS = {f"{api.name}Request": key for key, api in APIS.items()}


@pytest.fixture
def controller() -> Controller:
    return Controller(authorizer_class_name=STANDARD_AUTHORIZER, super_users="User:admin")


def asked(t: Controller, user: str, body: Any) -> Any:
    """The answer to a request that broker 1 passes on for a user."""
    identity = ClientIdentity(Principal(USER_TYPE, user))
    return t.ask(1, Envelope(body, "test", None, "10.0.0.5", identity))


def creation(*names: str) -> m.CreateTopicsRequest:
    topic = m.CreateTopicsRequest.CreatableTopic
    return m.CreateTopicsRequest([topic(name, 1, 1) for name in names], 5_000)


def test_a_request__is_checked_for_the_client_that_the_broker_names(controller: Controller) -> None:
    def error(answer: Any) -> int:
        return int(answer.topics[0].error_code)

    assert error(asked(controller, "alice", creation("t"))) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert error(asked(controller, "admin", creation("t"))) == ErrorCode.NONE
    assert error(controller.ask(1, creation("u"))) == ErrorCode.NONE
    (note,) = (note for note in controller.notes if isinstance(note.event, AuthorizationDenied))
    assert note.event.subject == "User:alice"


@pytest.mark.parametrize("name", sorted(GUARDS))
def test_any_request__is_answered(controller: Controller, name: str) -> None:
    key = KEYS[name]
    for version in range(VERSIONS[key][0], VERSIONS[key][1] + 1):
        for seed in range(3):
            body = Generator(f"{name}/{version}/{seed}", wild=False).message(name, version)
            answer = asked(controller, "alice", body)
            assert answer is not None
            if isinstance(answer, RequestDenied):
                assert answer.error is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_without_an_authorizer__nothing_is_checked() -> None:
    assert not asked(Controller(), "alice", creation("t")).topics[0].error_code
