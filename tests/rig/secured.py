"""A cluster with an authorizer in virtual time, asked by clients who have authenticated.

    rig = Secured({"alice": [allow("read", topic="orders")]})
    answer = rig.ask("alice", ApiKey.METADATA, 12, body)

Owns: `Secured`, and ACLs in few words.  Never: authenticates: a request has the identity that a
listener would have given it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kcluster.config.topology.model import Topology
from kcluster.contract import Reply, Request
from kcluster.principals import USER_TYPE, ClientIdentity, Principal
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey, codec
from kcluster.runtime.process import Process
from kcluster.security.acls import (
    CLUSTER_NAME,
    Acl,
    AclOperation,
    AclPermission,
    AclResource,
    PatternType,
)
from kcluster.security.authorizer import STANDARD_AUTHORIZER
from tests.rig.cluster import VirtualRig

ADMIN = "admin"
CLOSED = "closed"
CLIENT_HOST = "10.0.0.5"


def acl(
    principal: str,
    operation: str,
    permission: AclPermission = AclPermission.ALLOW,
    host: str = "*",
    **resource: str | bool,
) -> Acl:
    """`acl("alice", "read", topic="orders-*")`: a name that ends with `*` is a prefix, and `*`
    alone is any name; `cluster=True`."""
    ((kind, name),) = resource.items()
    name = CLUSTER_NAME if name is True else str(name)
    is_prefix = name != "*" and name.endswith("*")
    return Acl(
        AclResource(kind),
        name[:-1] if is_prefix else name,
        PatternType.PREFIXED if is_prefix else PatternType.LITERAL,
        principal if ":" in principal else f"User:{principal}",
        host,
        AclOperation(operation),
        permission,
    )


def deny(principal: str, operation: str, **more: Any) -> Acl:
    return acl(principal, operation, AclPermission.DENY, **more)


class Secured(VirtualRig):
    """A cluster whose one super user is `admin`.  `topics`: by name, the brokers of each
    partition."""

    def __init__(
        self,
        *acls: Acl,
        brokers: int = 1,
        topics: Mapping[str, Sequence[Sequence[int]]] = {"orders": [[1]], "secret": [[1]]},
        **configs: Any,
    ) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        config = {
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": f"User:{ADMIN}",
            "group.initial.rebalance.delay.ms": 0,
            **named,
        }
        assigned = {
            name: {"assignment": [list(replicas) for replicas in partitions]}
            for name, partitions in topics.items()
        }
        super().__init__(Topology.of(brokers=brokers, topics=assigned, config=config))
        self.replies: dict[int, Any] = {}
        self.sent = 0
        self.time.beside = self
        self.open()
        self.wait(self.verbs.settled.all_serving, "start")
        if acls:
            self.allow(*acls)

    # --------------------------------------------------------------------------------- asking

    def send(
        self,
        user: str,
        api_key: ApiKey,
        version: int,
        body: Any,
        broker: int = 1,
        connection: int | None = None,
        host: str = CLIENT_HOST,
    ) -> int:
        """Send a request; `replies` has its answer under the number returned, now or later."""
        self.sent += 1
        coded = codec(api_key, version)
        frame = memoryview(bytearray(b"".join(coded.encode_request(body))))
        request = Request(
            connection or 1_000_000 + self.sent,
            api_key,
            version,
            self.sent,
            "test",
            coded.decode_request(frame, 0),
            host,
            self.now_ms,
            ClientIdentity(Principal(USER_TYPE, user)),
        )
        self.dispatcher.dispatch(broker, request)
        return self.sent

    def ask_as(
        self, user: str, api_key: ApiKey, version: int, body: Any, broker: int = 1, **more: Any
    ) -> Any:
        """Send a request; its answer, after as much time as it takes; CLOSED without one."""
        number = self.send(user, api_key, version, body, broker, **more)
        self.wait(lambda: number in self.replies, f"answer to {api_key.name}")
        return self.replies.pop(number)

    def allow(self, *acls: Acl) -> None:
        """Create ACLs, as admin."""
        wanted = [
            m.CreateAclsRequest.AclCreation(
                each.resource_type.code,
                each.resource_name,
                each.pattern_type.code,
                each.principal,
                each.host,
                each.operation.code,
                each.permission.code,
            )
            for each in acls
        ]
        answer = self.ask_as(ADMIN, ApiKey.CREATE_ACLS, 3, m.CreateAclsRequest(wanted))
        assert not any(result.error_code for result in answer.results), answer

    def revoke(self, *acls: Acl) -> None:
        """Delete ACLs, as admin."""
        wanted = [
            m.DeleteAclsRequest.DeleteAclsFilter(
                each.resource_type.code,
                each.resource_name,
                each.pattern_type.code,
                each.principal,
                each.host,
                each.operation.code,
                each.permission.code,
            )
            for each in acls
        ]
        answer = self.ask_as(ADMIN, ApiKey.DELETE_ACLS, 3, m.DeleteAclsRequest(wanted))
        assert all(len(result.matching_acls) == 1 for result in answer.filter_results), answer

    # ------------------------------------------------------------------------- as an Outlet

    def reply(self, node_id: int, reply: Reply) -> None:
        request = reply.request
        if reply.body is not None:
            coded = codec(request.api_key, request.api_version)
            frame = b"".join(coded.encode_response(reply.body))
            self.replies[request.correlation_id] = coded.decode_response(
                memoryview(bytearray(frame)), 0
            )

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        self.replies[connection_id - 1_000_000] = CLOSED

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        raise AssertionError("no broker is added")

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        return ()

    def process_changed(self, process: Process, was: object) -> None:
        """Nothing: these connections are not kept."""

    def accept_clients(self, node_id: int) -> None:
        """Nothing: these connections do not look at ports."""
