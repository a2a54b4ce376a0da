"""DescribeUserScramCredentials (API 50, v0) and AlterUserScramCredentials (API 51, v0).

Owns: the description of credentials, from the image.  Never: checks or stores one (the controller
does), shows a salt or key.
Kafka: ScramImage.describe, KafkaApis (forwarded); KIP-554.
"""

from __future__ import annotations

from collections import Counter

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.forwarding import forward
from kcluster.broker.registry import Answer, handles
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.java import hash_order, java_hash_code

_Answer = m.DescribeUserScramCredentialsResponse


@handles(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=(0, 0))
def describe_user_scram_credentials(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeUserScramCredentialsResponse:
    """Mechanisms and iterations of the named users, or of all users (if the list is null or empty).

    Behaviour:
    - DUPLICATE_RESOURCE for a user named twice, RESOURCE_NOT_FOUND for a user without credentials;
    - users in the order of Kafka's hash table.
    Versions:
    - v0: KIP-554
    """
    image = broker.image
    users: list[str] = [user.name for user in request.body.users or ()]
    times = Counter(users)
    if not users:
        users = [name for name, _mechanism in image.scram_credentials]
    return _Answer(
        results=[_described(image, user, times[user]) for user in hash_order(users, java_hash_code)]
    )


def _described(
    image: MetadataImage, user: str, times: int
) -> _Answer.DescribeUserScramCredentialsResult:
    result = _Answer.DescribeUserScramCredentialsResult
    if times > 1:
        return result(user, ErrorCode.DUPLICATE_RESOURCE, f"{user} is asked for {times} times")
    keys = sorted(key for key in image.scram_credentials if key[0] == user)
    if not keys:
        return result(user, ErrorCode.RESOURCE_NOT_FOUND, f"{user} has no credentials")
    infos = [
        _Answer.CredentialInfo(mechanism, image.scram_credentials[name, mechanism].iterations)
        for name, mechanism in keys
    ]
    return result(user, ErrorCode.NONE, "", infos)


@handles(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=(0, 0))
def alter_user_scram_credentials(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Set and remove credentials.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT for each user after request.timeout.ms.
    Versions:
    - v0: KIP-554
    """
    timeout_ms = broker.config.request_timeout_ms
    return forward(broker, request, timeout_ms, alter_scram_timed_out, now_ms)


def alter_scram_timed_out(
    request: m.AlterUserScramCredentialsRequest,
) -> m.AlterUserScramCredentialsResponse:
    """REQUEST_TIMED_OUT for each user, once, in the order of Kafka's HashSet."""
    error = ErrorCode.REQUEST_TIMED_OUT
    names = [change.name for change in request.deletions]
    names += [change.name for change in request.upsertions]
    result = m.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    return m.AlterUserScramCredentialsResponse(
        results=[result(user, error, error.text) for user in hash_order(names, java_hash_code)]
    )
