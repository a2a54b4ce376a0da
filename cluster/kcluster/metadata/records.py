"""The metadata log's records, the values they carry, and the request by which brokers pull them.

Owns: the fields of each record.  Never: applies one to an image (metadata/image.py does), decides
anything (controller/ does).  Written by the controller alone, read by every broker. Kafka:
metadata/src/main/resources/common/metadata/*.json, ConfigResource.Type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kcluster.contract import NoteId
from kcluster.principals import UNAUTHENTICATED, BrokerEndpoint, ClientIdentity, Principal
from kcluster.protocol.codec.schema import Versions
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.security.acls import Acl

NO_LEADER: Final = -1

BROKER_RESOURCE: Final = 4
TOPIC_RESOURCE: Final = 2
CLIENT_METRICS_RESOURCE: Final = 16
GROUP_RESOURCE: Final = 32
"""Kafka's ConfigResource.Type codes."""

CLUSTER_DEFAULT: Final = ""
"""Resource name of cluster-wide dynamic broker configs."""

QuotaEntity = tuple[tuple[str, str | None], ...]
"""The entity of a quota: (`user`, `client-id` or `ip`, its name); None stands for all others."""


class BrokerRegistration(Struct, frozen=True, gc=False):
    """A broker in the controller's view.  Kafka: BrokerRegistration."""

    broker_id: int
    epoch: int
    """Offset of the registration record; a restarted broker gets a greater epoch."""
    endpoints: tuple[BrokerEndpoint, ...]
    """The address for the clients of each listener."""
    rack: str | None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    incarnation_id: bytes = b""
    """A number that the broker's process draws at its start; another number means a restart."""
    features: Mapping[str, Versions] = {}
    """The lowest and highest level of each feature that the broker knows (KIP-584)."""

    @property
    def is_active(self) -> bool:
        """Whether the broker may be in an ISR and be elected (KIP-841)."""
        return not self.fenced and not self.in_controlled_shutdown

    def endpoint(self, listener: str) -> BrokerEndpoint | None:
        """The address for the clients of a listener; None if the broker does not have it."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


class PartitionRegistration(Struct, frozen=True, gc=False):
    """A partition in the controller's view.  Kafka: PartitionRegistration."""

    topic_id: bytes
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    """The leader's broker id, or NO_LEADER."""
    leader_epoch: int
    """An epoch that is incremented at each change of leader, whether to another broker or to none.
    Since 3.6 an ISR shrink alone does not increment it (KAFKA-15021)."""
    partition_epoch: int
    """An epoch that is incremented at each change of any field."""
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    recovering: bool = False
    """Whether the leader was elected uncleanly and has not yet recovered:
    LeaderRecoveryState.RECOVERING (KIP-704)."""
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()


# ------------------------------------------------------------------------------------------ records


class RegisterBrokerRecord(Struct, frozen=True, gc=False):
    """The process of a broker has registered; it is fenced until it has caught up."""

    registration: BrokerRegistration
    cause: NoteId | None = None


class BrokerRegistrationChangeRecord(Struct, frozen=True, gc=False):
    """A broker was fenced or unfenced, or began its controlled shutdown.  None: no change."""

    broker_id: int
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    cause: NoteId | None = None


class UnregisterBrokerRecord(Struct, frozen=True, gc=False):
    broker_id: int
    broker_epoch: int
    cause: NoteId | None = None


class TopicRecord(Struct, frozen=True, gc=False):
    name: str
    topic_id: bytes
    cause: NoteId | None = None


class PartitionRecord(Struct, frozen=True, gc=False):
    """A partition's whole state after creation or change.  Kafka writes only the changed fields
    (PartitionChangeRecord); the whole frozen value is shared here, so it costs less than a diff."""

    registration: PartitionRegistration
    cause: NoteId | None = None


class RemoveTopicRecord(Struct, frozen=True, gc=False):
    topic_id: bytes
    cause: NoteId | None = None


class ConfigRecord(Struct, frozen=True, gc=False):
    """A config of a resource; `value`: None removes it."""

    resource_type: int
    resource_name: str
    name: str
    value: str | None
    cause: NoteId | None = None


class ProducerIdsRecord(Struct, frozen=True, gc=False):
    """Producer ids below `next_producer_id` have been handed out to brokers in blocks."""

    broker_id: int
    broker_epoch: int
    next_producer_id: int
    cause: NoteId | None = None


class FeatureLevelRecord(Struct, frozen=True, gc=False):
    """The finalized level of a feature; `level`: 0 if it is off."""

    name: str
    level: int
    cause: NoteId | None = None


class ClientQuotaRecord(Struct, frozen=True, gc=False):
    """A quota of clients; `value`: None removes the quota `key` of `entity`."""

    entity: QuotaEntity
    key: str
    value: float | None
    cause: NoteId | None = None


class UserScramCredentialRecord(Struct, frozen=True, gc=False):
    """The values against which a user's password is checked (RFC 5802); the password itself is
    never known."""

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    cause: NoteId | None = None


class RemoveUserScramCredentialRecord(Struct, frozen=True, gc=False):
    name: str
    mechanism: int
    cause: NoteId | None = None


class AccessControlEntryRecord(Struct, frozen=True, gc=False):
    """An ACL was created, under an id that the controller drew."""

    acl_id: bytes
    acl: Acl
    cause: NoteId | None = None


class RemoveAccessControlEntryRecord(Struct, frozen=True, gc=False):
    acl_id: bytes
    cause: NoteId | None = None


class DelegationTokenRecord(Struct, frozen=True, gc=False):
    """A delegation token was created, renewed, or given another end."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    """The time after which the token cannot be renewed."""

    def may_renew(self, principal: Principal) -> bool:
        """Whether a client may renew the token, or end it."""
        return principal == self.owner or principal in self.renewers

    def is_expired(self, now_ms: int) -> bool:
        """Whether the token is valid no longer."""
        return self.max_ms < now_ms or self.expires_ms < now_ms


class RemoveDelegationTokenRecord(Struct, frozen=True, gc=False):
    token_id: str


MetadataRecord = (
    RegisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | RemoveTopicRecord
    | ConfigRecord
    | ProducerIdsRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
)


class Envelope(Struct, gc=False):
    """A client's request to the controller, with the client.  Kafka: KIP-590.

    `is_strict`: whether its version is new enough for a refusal by its client's
    controller_mutation_rate; None if that quota does not apply.
    """

    body: Message
    client_id: str
    is_strict: bool | None
    client_host: str = ""
    identity: ClientIdentity = UNAUTHENTICATED


class TokenChange(Struct, gc=False):
    """A client's request to the controller for a delegation token, with the client."""

    body: Message
    requester: Principal


class RequestDenied(Struct, frozen=True, gc=False):
    """The controller's answer to a client's request that its ACLs deny as a whole.  The client's
    broker answers with the error in the form of the API."""

    error: ErrorCode


# -------------------------------------------------------------------- brokers pull the log with it


class MetadataFetch(Struct, gc=False):
    """A broker's request to the controller for records from `offset` on.  The answer
    (metadata/delta.py) waits up to `max_wait_ms` until there are records. Kafka: Fetch of
    __cluster_metadata by an observer."""

    broker_id: int
    offset: int
    max_wait_ms: int
