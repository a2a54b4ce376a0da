"""The form of a guard, and the guards that check a single right.

Owns: these.  Never: knows an API.
Kafka: AuthHelper.
"""

from __future__ import annotations

from collections.abc import Callable

from kcluster.broker.broker import Broker
from kcluster.broker.registry import NoResponse
from kcluster.contract import Request
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.refusals import GuardedCall
from kcluster.security.rights import Admitted, Rights

Result = Message | NoResponse | Admitted | None
"""The answer to a refused request, or the admitted part of a request; None: all of it is
admitted."""
Guard = Callable[[Broker, Request, Rights], Result]
"""Checks a request: (broker, request, its client's rights) -> the result."""


def call_of(broker: Broker, request: Request) -> GuardedCall:
    """The API, version and body of a request, from which a refusal is made."""
    return GuardedCall(request.api_key, request.api_version, request.body, broker.image.topic_names)


def on_cluster(operation: AclOperation) -> Guard:
    """The guard of an API that needs a right on the cluster as a whole."""

    def guard(broker: Broker, request: Request, rights: Rights) -> Result:
        if rights.may_on_cluster(operation):
            return None
        return call_of(broker, request).refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    return guard


def on_group(operation: AclOperation) -> Guard:
    """The guard of an API that needs a right on one group."""

    def guard(broker: Broker, request: Request, rights: Rights) -> Result:
        group_id: str | None = request.body.group_id
        if group_id is None or rights.may(operation, AclResource.GROUP, group_id):
            return None  # the handler refuses a request without a group
        return call_of(broker, request).refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)

    return guard


def on_transactional_id(operation: AclOperation) -> Guard:
    """The guard of an API that needs a right on one transactional id."""

    def guard(broker: Broker, request: Request, rights: Rights) -> Result:
        name = request.body.transactional_id
        if rights.may(operation, AclResource.TRANSACTIONAL_ID, name):
            return None
        return call_of(broker, request).refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    return guard


def on_topics(operation: AclOperation) -> Guard:
    """The guard of an API that needs a right on each topic; allowed topics are answered."""

    def guard(broker: Broker, request: Request, rights: Rights) -> Result:
        call = call_of(broker, request)
        return call.refused_topics(rights.denied(operation, AclResource.TOPIC, call.topics))

    return guard


def after(first: Guard, then: Guard) -> Guard:
    """The guard of an API that needs one right on the whole, and others on its parts."""

    def guard(broker: Broker, request: Request, rights: Rights) -> Result:
        refused = first(broker, request, rights)
        return then(broker, request, rights) if refused is None else refused

    return guard
