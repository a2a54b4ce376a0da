"""The guards of a broker's APIs: what a client may ask, checked before the handler.

Owns: the table of guards, and admission.  Never: decides by an ACL (security/authorizer.py does),
or knows what a handler does.
Kafka: the authorization in KafkaApis, in its order and with its errors.

    a guard returns         the handler gets        the client gets
    None                    the request             the handler's answer
    a message               nothing                 that message
    Admitted                its body                the handler's answer, completed

There is a module for each family of APIs.  Requests that the controller answers are guarded there
(controller/security/authorization.py), and those with sessions (Fetch, ShareFetch,
ShareAcknowledge) ask for their topics in their handlers, because a topic stays in a session while
it is denied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.broker.authorization import admin, data, groups, metadata, share, transactional
from kcluster.broker.authorization.guards import Guard
from kcluster.broker.broker import Broker
from kcluster.broker.registry import NoResponse
from kcluster.contract import Request
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message
from kcluster.security.rights import Admitted

GUARDS: Final[Mapping[int, Guard]] = {
    **admin.GUARDS,
    **data.GUARDS,
    **groups.GUARDS,
    **metadata.GUARDS,
    **share.GUARDS,
    **transactional.GUARDS,
}
"""The guard of each API that a broker guards itself."""

OPEN: Final = frozenset(
    {
        ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY,
    }
)  # fmt: skip
"""The APIs that every client may use."""


def admit(broker: Broker, request: Request) -> Request | Message | NoResponse:
    """The part of a request that its client has the right to make, or the answer to a refused
    one."""
    guard = GUARDS.get(request.api_key)
    if guard is None:
        return request
    assert broker.access is not None
    result = guard(broker, request, broker.access.rights_of(request))
    if result is None:
        return request
    if not isinstance(result, Admitted):
        return result
    broker.access.will_complete(request, result.complete)
    return Request(
        request.connection_id,
        request.api_key,
        request.api_version,
        request.correlation_id,
        request.client_id,
        result.body,
        request.client_host,
        request.arrived_ms,
        request.identity,
    )
