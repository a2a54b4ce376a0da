"""An administrator's requests to the controller: topics, partitions, reassignments, configs.

Owns: the requests, as Kafka's tools send them; the text of a refusal.  Never: waits, decides
anything.
Kafka: kafka-topics, kafka-configs, kafka-reassign-partitions, kafka-cluster unregister.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from kcluster.config.creatable_topic import creatable_topic
from kcluster.config.kafka.client_quotas import CLIENT_ID
from kcluster.config.topology.specs import TopicSpec
from kcluster.contract import Rng
from kcluster.metadata.endpoints import registered
from kcluster.metadata.records import BrokerRegistration, TokenChange
from kcluster.operations.asking import Asking
from kcluster.principals import USER_TYPE, BrokerEndpoint, Principal
from kcluster.protocol import messages as m
from kcluster.protocol.errors import error_of
from kcluster.protocol.messages import Message
from kcluster.security.acls import Acl
from kcluster.security.sasl.mechanisms import SCRAM_CODES
from kcluster.security.sasl.nonces import draw_text
from kcluster.security.sasl.scram_keys import MIN_ITERATIONS, salted_password

TIMEOUT_MS: Final = 30_000
TOPIC, BROKER, GROUP = 2, 4, 32
"""Codes of ConfigResource.Type."""
SET, DELETE = 0, 1
"""Codes of AlterConfigOp.OpType."""

OnEnd = Callable[[str], None]
"""Called with "" when the operation is done, or with the text of its refusal."""


class Admin:
    """One administrator.  Every method returns at once; `on_end` is called with the answer."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    def create_topic(self, spec: TopicSpec, on_end: OnEnd) -> None:
        """Create a topic, with replicas placed by hand or as Kafka places them."""
        create = m.CreateTopicsRequest(topics=[creatable_topic(spec)], timeout_ms=TIMEOUT_MS)
        self._ask(create, on_end)

    def delete_topic(self, name: str, topic_id: bytes, on_end: OnEnd) -> None:
        """Delete a topic."""
        topic = m.DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=topic_id)
        self._ask(m.DeleteTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS), on_end)

    def add_partitions(self, topic: str, count: int, on_end: OnEnd) -> None:
        """Increase a topic's partitions to `count`."""
        wanted = m.CreatePartitionsRequest.CreatePartitionsTopic(
            name=topic, count=count, assignments=None
        )
        self._ask(m.CreatePartitionsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS), on_end)

    def reassign(
        self, topic: str, partition: int, replicas: Sequence[int] | None, on_end: OnEnd
    ) -> None:
        """Move a partition to these brokers; None cancels the current reassignment."""
        ask = m.AlterPartitionReassignmentsRequest
        one = ask.ReassignablePartition(
            partition_index=partition, replicas=None if replicas is None else list(replicas)
        )
        topics = [ask.ReassignableTopic(name=topic, partitions=[one])]
        self._ask(ask(timeout_ms=TIMEOUT_MS, topics=topics), on_end)

    def set_configs(
        self, kind: int, name: str, configs: Mapping[str, str | None], on_end: OnEnd
    ) -> None:
        """Set configs of a topic, group or broker (`""`: all brokers); a None value restores the
        default."""
        ask = m.IncrementalAlterConfigsRequest
        changes = [
            ask.AlterableConfig(
                name=key, config_operation=DELETE if value is None else SET, value=value
            )
            for key, value in configs.items()
        ]
        resource = ask.AlterConfigsResource(resource_type=kind, resource_name=name, configs=changes)
        self._ask(ask(resources=[resource]), on_end)

    def set_quotas(
        self, client_id: str | None, quotas: Mapping[str, float | None], on_end: OnEnd
    ) -> None:
        """Set quotas of the clients with an id (None: of each client id without its own); a None
        value removes a quota."""
        ask = m.AlterClientQuotasRequest
        changes = [
            ask.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in quotas.items()
        ]
        entity = [ask.EntityData(entity_type=CLIENT_ID, entity_name=client_id)]
        self._ask(ask(entries=[ask.EntryData(entity=entity, ops=changes)]), on_end)

    def set_password(
        self, user: str, password: str, mechanism: str, rng: Rng, on_end: OnEnd
    ) -> None:
        """Set a user's SCRAM credential for a mechanism; `rng`: for its salt."""
        salt = draw_text(rng).encode()
        salted = salted_password(mechanism, password, salt, MIN_ITERATIONS)
        ask = m.AlterUserScramCredentialsRequest
        change = ask.ScramCredentialUpsertion(
            name=user,
            mechanism=SCRAM_CODES[mechanism],
            iterations=MIN_ITERATIONS,
            salt=salt,
            salted_password=salted,
        )
        self._ask(ask(upsertions=[change]), on_end)

    def remove_password(self, user: str, mechanism: str, on_end: OnEnd) -> None:
        """Remove a user's SCRAM credential for a mechanism."""
        ask = m.AlterUserScramCredentialsRequest
        change = ask.ScramCredentialDeletion(name=user, mechanism=SCRAM_CODES[mechanism])
        self._ask(ask(deletions=[change]), on_end)

    def create_acls(self, acls: Iterable[Acl], on_end: OnEnd) -> None:
        """Create ACLs; one that exists stays."""
        self._ask(create_acls_request(acls), on_end)

    def delete_acls(self, acls: Iterable[Acl], on_end: OnEnd) -> None:
        """Delete ACLs; one that does not exist is left alone."""
        ask = m.DeleteAclsRequest
        filters = [
            ask.DeleteAclsFilter(
                resource_type_filter=acl.resource_type.code,
                resource_name_filter=acl.resource_name,
                pattern_type_filter=acl.pattern_type.code,
                principal_filter=acl.principal,
                host_filter=acl.host,
                operation=acl.operation.code,
                permission_type=acl.permission.code,
            )
            for acl in acls
        ]
        self._ask(ask(filters=filters), on_end)

    def expire_token(self, hmac: bytes, owner: str, on_end: OnEnd) -> None:
        """Expire a user's delegation token now.  `hmac`: the token's."""
        expiry = m.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1)
        change = TokenChange(expiry, Principal(USER_TYPE, owner))
        self._asking.ask(change, lambda answer: on_end(next(_refusals(answer), "")))

    def amend_registration(
        self,
        cluster_id: str,
        broker: BrokerRegistration,
        endpoints: tuple[BrokerEndpoint, ...],
        on_end: OnEnd,
    ) -> None:
        """Register a broker again, as the same process at other addresses."""
        request = m.BrokerRegistrationRequest(
            broker_id=broker.broker_id,
            cluster_id=cluster_id,
            incarnation_id=broker.incarnation_id,
            listeners=registered(endpoints),
            rack=broker.rack,
        )
        self._ask(request, on_end)

    def unregister(self, broker_id: int, on_end: OnEnd) -> None:
        """Unregister a broker that is down."""
        self._ask(m.UnregisterBrokerRequest(broker_id=broker_id), on_end)

    def _ask(self, body: Message, on_end: OnEnd) -> None:
        self._asking.ask(body, lambda answer: on_end(next(_refusals(answer), "")))


def create_acls_request(acls: Iterable[Acl]) -> m.CreateAclsRequest:
    """A request for ACLs."""
    ask = m.CreateAclsRequest
    creations = [
        ask.AclCreation(
            resource_type=acl.resource_type.code,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type.code,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation.code,
            permission_type=acl.permission.code,
        )
        for acl in acls
    ]
    return ask(creations=creations)


def _refusals(answer: object) -> Iterator[str]:
    """The text of every error in an answer."""
    code = getattr(answer, "error_code", 0)
    if code:
        error = error_of(code)
        yield f"{error.name}: {getattr(answer, 'error_message', None) or error.text}"
    for field in ("topics", "responses", "results", "filter_results", "partitions", "entries"):
        for part in getattr(answer, field, None) or ():
            if hasattr(part, "__struct_fields__"):
                yield from _refusals(part)
