"""The broker's end of connections in virtual time, which carry messages instead of frames.

Owns: the admission of a request by its connection's login, and the end of a login that fails.
Never: decides whether a client may come in (security/sasl/ does), carries a message
(drivers/virtual_time.py does).
Kafka: SocketServer.Processor, KafkaChannel; broker/channel.py has the counterpart for frames.
"""

from __future__ import annotations

from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import LoginFailed, Reply, Request
from kcluster.drivers.wires.virtual import ClientConnection
from kcluster.principals import ClientIdentity
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.error_answers import ErrorAnswers
from kcluster.protocol.errors import ErrorCode


def listens(node: BrokerNodeView, identity: ClientIdentity) -> bool:
    """Whether a broker has the listener by which a client connects."""
    wanted = (identity.listener, identity.protocol)
    return any((one.listener, one.protocol) == wanted for one in node.view.endpoints)


def admit(
    node: BrokerNodeView, connection: ClientConnection, request: Request, now_ms: int
) -> Request | LoginFailed:
    """The request as the broker gets it, with the client's identity; or the end of its login."""
    identity = connection.identity
    request.identity = identity
    if not identity.protocol.has_sasl:
        return request
    logins = node.logins
    assert logins is not None, "it has such a listener"
    login = logins.of(connection.connection_id, identity)
    failure = login.admit(request.api_key, 0, now_ms)
    if failure is None:
        request.identity = login.identity
        return request
    failed = logins.failed(failure, connection.connection_id, request.client_host)
    if failure.is_answered:
        answers = ErrorAnswers(
            request.api_key,
            request.api_version,
            ErrorCode.ILLEGAL_SASL_STATE,
            node.image.topic_names.get,
        )
        failed.request, failed.answer = request, answers.answer(request.body)
    return failed


def answered(node: BrokerNodeView, reply: Reply) -> None:
    """Take note of an answer that a login waits for."""
    request = reply.request
    if request.api_key != ApiKey.API_VERSIONS or reply.body is None or reply.body.error_code:
        return
    login = None if node.logins is None else node.logins.get(request.connection_id)
    if login is not None:
        login.versions_answered()
