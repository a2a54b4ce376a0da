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
from kcluster.metadata.records import Envelope
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message

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

    def on_answer(answer: Message | None, now_ms: int) -> None:
        broker.reply(request, timed_out(request.body) if answer is None else answer)

    body = request.body
    if broker.quotas.is_active and request.api_key in STRICT_SINCE:
        is_strict = request.api_version >= STRICT_SINCE[request.api_key]
        body = Envelope(body, request.client_id or "", is_strict)
    broker.ask_controller(body, on_answer, timeout_ms, now_ms)
    return PARKED
