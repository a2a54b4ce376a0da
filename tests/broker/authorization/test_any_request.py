"""No request, however strange, harms a broker that asks for rights: made-up bodies in every API and
version, from a user without rights, and from one with some."""

from __future__ import annotations

import pytest

from kcluster.broker.registry import SERVED_APIS
from kcluster.contract import CloseConnection, Reply, Request
from kcluster.metadata.records import AccessControlEntryRecord
from kcluster.principals import USER_TYPE, ClientIdentity, Principal
from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.security.acls import Acl, AclPermission, AclResource
from kcluster.security.authorizer import STANDARD_AUTHORIZER
from tests.protocol.generated import Generator
from tests.rig.one_broker import TOPIC, OneBroker, broker_records, topic_records
from tests.rig.secured import acl

SOME = [
    acl("bob", operation, AclPermission.ALLOW, **{kind: name})
    for kind in ("topic", "group", "transactional_id")
    for operation, name in (("describe", "*"), ("read", TOPIC), ("write", TOPIC), ("all", "x*"))
    if kind != "transactional_id" or operation != "read"
]
BODIES = 3


def broker_with(acls: list[Acl]) -> OneBroker:
    records = [AccessControlEntryRecord(bytes([number]), each) for number, each in enumerate(acls)]
    one = OneBroker(
        broker_records(1),
        topic_records(TOPIC, (1,), (1,)),
        list(records),
        authorizer_class_name=STANDARD_AUTHORIZER,
    )
    assert all(each.resource_type is not AclResource.UNKNOWN for each in acls)
    return one


@pytest.mark.parametrize("acls", [[], SOME], ids=["no rights", "some rights"])
@pytest.mark.parametrize("api_key", sorted(SERVED_APIS), ids=lambda key: ApiKey(key).name)
def test_any_request__is_answered_or_waits(api_key: int, acls: list[Acl]) -> None:
    one = broker_with(acls)
    served, number = SERVED_APIS[api_key], 0
    bob = ClientIdentity(Principal(USER_TYPE, "bob"))
    for version in range(served.min_version, served.max_version + 1):
        coded = codec(api_key, version)
        for seed in range(BODIES):
            number += 1
            generator = Generator(f"{api_key}/{version}/{seed}", wild=seed % 2 == 1)
            body = generator.message(f"{APIS[api_key].name}Request", version)
            frame = memoryview(bytearray(b"".join(coded.encode_request(body))))
            request = Request(
                number, api_key, version, number, "test", coded.decode_request(frame, 0),
                "10.0.0.5", one.now_ms, bob,
            )  # fmt: skip
            for effect in one.broker.step(one.now_ms, request):
                if isinstance(effect, Reply):
                    assert effect.request is request, "the client's own request is answered"
                    if effect.body is not None:
                        coded.encode_response(effect.body)
                assert not isinstance(effect, CloseConnection) or effect.connection_id == number
