"""Requests that only the controller can answer: passed on, and answered with its answer.

Owns: the wait for that answer.  Never: reads a request (its handler does, before).
Kafka: ForwardingManager, KIP-590.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.registry import PARKED, Parked
from kcluster.broker.versions import CONTROLLERS_OWN, is_not_controller, not_controller
from kcluster.contract import Request
from kcluster.metadata.records import Envelope, RequestDenied
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.security.refusals import DENIED

STRICT_SINCE: Final[Mapping[int, int]] = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""The requests that controller_mutation_rate limits, each with the first version that is refused by
it (KIP-599)."""


def forward(
    broker: Broker,
    request: Request,
    timeout_ms: int,
    timed_out: Callable[..., Message],
    now_ms: int,
) -> Parked | Message:
    """Forward `request` to the controller.  `timed_out(request.body)` is the answer after
    `timeout_ms`.

    With a timeout of 0 the request is not forwarded and has no effect, as in Kafka, whose
    controller drops overdue requests.
    """
    if request.api_key in CONTROLLERS_OWN and is_not_controller(
        broker.release, broker.image, broker.node_id
    ):
        return not_controller(timed_out(request.body))
    if timeout_ms <= 0:
        return timed_out(request.body)

    def on_answer(answer: Message | RequestDenied | None, now_ms: int) -> None:
        if answer is None:
            answer = timed_out(request.body)
        elif isinstance(answer, RequestDenied):
            answer = denied(timed_out(request.body), answer.error)
        broker.reply(request, answer)

    broker.ask_controller(enveloped(broker, request, request.body), on_answer, timeout_ms, now_ms)
    return PARKED


def enveloped(broker: Broker, request: Request, body: Message) -> Message | Envelope:
    """What the controller gets of a client's request: with the client, if it matters who it is."""
    strict_since = STRICT_SINCE.get(request.api_key) if broker.quotas.is_active else None
    if strict_since is None and broker.access is None:
        return body
    return Envelope(
        body,
        request.client_id or "",
        None if strict_since is None else request.api_version >= strict_since,
        request.client_host,
        request.identity,
    )


def denied(answer: Message, error: ErrorCode) -> Message:
    """The answer to a request that timed out, with the error of a denied one."""
    for name in answer.__struct_fields__:
        value = getattr(answer, name)
        if name == "error_code":
            setattr(answer, name, error)
        elif name == "error_message":
            setattr(answer, name, DENIED[error])
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Message):
                    denied(item, error)
    return answer
