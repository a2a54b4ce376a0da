"""Kafka's error codes as one table, and the two exceptions of this package.

Owns: ErrorCode, what each code means for a caller, ProtocolError, StringTooLong.  Never: raises
a Kafka error; they are values in answers.  Kafka: org.apache.kafka.common.protocol.Errors of 4.4.0
(codes, names, which are retriable); `definite` and the texts are ours.

Exceptions of the project come in three families: ProtocolError (malformed bytes; the connection is
closed), errors in a user's files (kcluster.config), and AssertionError (our bug).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

_R: Final = 1
_D: Final = 2


class ProtocolError(Exception):
    """The error for bytes that are not a message of the protocol.

    `position`: offset in the buffer of the first byte of the field that cannot be read, or of
    its length.  `field_path`: `topics[2].partitions[0].records`; "" if no field is concerned.
    """

    def __init__(self, reason: str, position: int, field_path: str = "") -> None:
        super().__init__(reason, position, field_path)
        self.reason = reason
        self.position = position
        self.field_path = field_path

    def __str__(self) -> str:
        where = f"{self.field_path}: " if self.field_path else ""
        return f"{where}{self.reason} at byte {self.position}"


class StringTooLong(Exception):
    """The error for a string that is too long for any message.  A client's long name can cause one
    when an error message quotes it.  Kafka: the RuntimeException of its generated writers."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"a string of {size_bytes:,} bytes cannot be written")


class ErrorCode(IntEnum):
    """Kafka's error codes.  Each row has code, flags and text.  _R: the error is retriable.  _D:
    the error is *definite*, so the operation certainly had no effect.  Without _D the outcome is
    unknown, and checks may not count the operation as failed."""

    retriable: bool
    definite: bool
    text: str

    # Every row has all three; the defaults exist for type checkers, which otherwise reject a
    # look-up such as ErrorCode(3).
    def __new__(cls, code: int, flags: int = 0, text: str = "") -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = bool(flags & _R)
        member.definite = bool(flags & _D)
        member.text = text
        return member

    # fmt: off
    UNKNOWN_SERVER_ERROR = (-1, 0, "An unexpected error inside the broker.")
    NONE = (0, 0, "No error.")
    OFFSET_OUT_OF_RANGE = (1, _D, "The offset is outside of this replica's log.")
    CORRUPT_MESSAGE = (
        2,
        _R | _D,
        "The batch fails its checksum, is too big, or lacks a key that compaction needs.",
    )
    UNKNOWN_TOPIC_OR_PARTITION = (3, _R | _D, "This broker does not know the topic or partition.")
    INVALID_FETCH_SIZE = (4, _D, "The requested fetch size is invalid.")
    LEADER_NOT_AVAILABLE = (5, _R | _D, "The partition has no leader at the moment.")
    NOT_LEADER_OR_FOLLOWER = (
        6,
        _R,
        "This broker does not lead the partition, or no longer; an append that waited may survive.",
    )
    REQUEST_TIMED_OUT = (7, _R, "The request timed out; it may still take effect.")
    BROKER_NOT_AVAILABLE = (8, _D, "The broker is down.")
    REPLICA_NOT_AVAILABLE = (9, _R | _D, "The requested replica is not on this broker.")
    MESSAGE_TOO_LARGE = (10, _D, "A batch is bigger than max.message.bytes allows.")
    STALE_CONTROLLER_EPOCH = (11, _D, "The request comes from a controller that was replaced.")
    OFFSET_METADATA_TOO_LARGE = (
        12,
        _D,
        "The commit's metadata string is longer than the broker allows.",
    )
    NETWORK_EXCEPTION = (13, _R, "The connection broke before the answer came.")
    COORDINATOR_LOAD_IN_PROGRESS = (14, _R | _D, "The coordinator is still reading its log.")
    COORDINATOR_NOT_AVAILABLE = (
        15,
        _R,
        "There is no coordinator, or its append was not replicated in time.",
    )
    NOT_COORDINATOR = (16, _R, "Another broker coordinates this group or transaction now.")
    INVALID_TOPIC_EXCEPTION = (17, _D, "The topic's name is invalid, or the topic is internal.")
    RECORD_LIST_TOO_LARGE = (18, _D, "The batch is bigger than a whole log segment.")
    NOT_ENOUGH_REPLICAS = (
        19,
        _R | _D,
        "The ISR is smaller than min.insync.replicas; nothing was appended.",
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        _R,
        "Appended, but the ISR shrank below min.insync.replicas before all had it.",
    )
    INVALID_REQUIRED_ACKS = (21, _D, "acks must be -1, 0 or 1.")
    ILLEGAL_GENERATION = (22, _D, "The generation is not the group's current one.")
    INCONSISTENT_GROUP_PROTOCOL = (23, _D, "The member's protocols do not match the group's.")
    INVALID_GROUP_ID = (24, _D, "The group id is invalid.")
    UNKNOWN_MEMBER_ID = (25, _D, "The group has no such member.")
    INVALID_SESSION_TIMEOUT = (26, _D, "The session timeout is outside what the broker allows.")
    REBALANCE_IN_PROGRESS = (27, _D, "The group is rebalancing; the member must join again.")
    INVALID_COMMIT_OFFSET_SIZE = (28, _D, "The offset commit is too big for one record.")
    TOPIC_AUTHORIZATION_FAILED = (29, _D, "No permission for this topic.")
    GROUP_AUTHORIZATION_FAILED = (30, _D, "No permission for this group.")
    CLUSTER_AUTHORIZATION_FAILED = (31, _D, "No permission for this operation on the cluster.")
    INVALID_TIMESTAMP = (32, _D, "A record's timestamp is outside the accepted window.")
    UNSUPPORTED_SASL_MECHANISM = (33, _D, "The broker does not offer this SASL mechanism.")
    ILLEGAL_SASL_STATE = (34, _D, "The request is not allowed in the SASL state of the connection.")
    UNSUPPORTED_VERSION = (35, _D, "The broker does not serve this version of the API.")
    TOPIC_ALREADY_EXISTS = (36, _D, "A topic with this name already exists.")
    INVALID_PARTITIONS = (37, _D, "The number of partitions is invalid.")
    INVALID_REPLICATION_FACTOR = (
        38,
        _D,
        "The replication factor is below 1 or above the number of usable brokers.",
    )
    INVALID_REPLICA_ASSIGNMENT = (39, _D, "The replica assignment is invalid.")
    INVALID_CONFIG = (40, _D, "A config's name or value is invalid.")
    NOT_CONTROLLER = (41, _R, "Another node is the controller; a change that waited may survive.")
    INVALID_REQUEST = (42, _D, "The request contradicts itself or the protocol.")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (
        43,
        _D,
        "The record format on this broker lacks what the request needs.",
    )
    POLICY_VIOLATION = (44, _D, "A policy of the cluster forbids the request.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, _D, "A batch of this producer is missing before this one.")
    DUPLICATE_SEQUENCE_NUMBER = (46, 0, "This batch has already been appended.")
    INVALID_PRODUCER_EPOCH = (47, _D, "The producer's epoch is outdated.")
    INVALID_TXN_STATE = (48, _D, "The transaction's state does not allow this step.")
    INVALID_PRODUCER_ID_MAPPING = (
        49,
        _D,
        "The producer id is not that of this transactional id.",
    )
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        _D,
        "The transaction timeout is above transaction.max.timeout.ms.",
    )
    CONCURRENT_TRANSACTIONS = (
        51,
        _R | _D,
        "Another step of the same transaction is still under way.",
    )
    TRANSACTION_COORDINATOR_FENCED = (
        52,
        _D,
        "The markers come from a transaction coordinator that was replaced.",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, _D, "No permission for this transactional id.")
    SECURITY_DISABLED = (54, _D, "The broker runs without an authorizer.")
    OPERATION_NOT_ATTEMPTED = (55, _D, "The broker did not attempt this part of the request.")
    KAFKA_STORAGE_ERROR = (56, _R, "The disk of the log failed.")
    LOG_DIR_NOT_FOUND = (57, _D, "The broker has no such log directory.")
    SASL_AUTHENTICATION_FAILED = (58, _D, "SASL authentication failed.")
    UNKNOWN_PRODUCER_ID = (59, _D, "The broker has forgotten this producer id.")
    REASSIGNMENT_IN_PROGRESS = (60, _D, "The partition is being reassigned.")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, _D, "Delegation tokens are switched off.")
    DELEGATION_TOKEN_NOT_FOUND = (62, _D, "The broker does not know the delegation token.")
    DELEGATION_TOKEN_OWNER_MISMATCH = (
        63,
        _D,
        "The principal neither owns nor may renew the token.",
    )
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        _D,
        "Delegation tokens are not issued over such a connection.",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, _D, "No permission for this delegation token.")
    DELEGATION_TOKEN_EXPIRED = (66, _D, "The delegation token has expired.")
    INVALID_PRINCIPAL_TYPE = (67, _D, "The principal type is not supported.")
    NON_EMPTY_GROUP = (68, _D, "The group still has members.")
    GROUP_ID_NOT_FOUND = (69, _D, "There is no such group.")
    FETCH_SESSION_ID_NOT_FOUND = (70, _R | _D, "The broker does not know the fetch session.")
    INVALID_FETCH_SESSION_EPOCH = (71, _R | _D, "The fetch session's epoch is not the next one.")
    LISTENER_NOT_FOUND = (
        72,
        _R | _D,
        "The leader has no listener with the name of the client's listener.",
    )
    TOPIC_DELETION_DISABLED = (73, _D, "delete.topic.enable is off.")
    FENCED_LEADER_EPOCH = (74, _R | _D, "The requested leader epoch is older than the partition's.")
    UNKNOWN_LEADER_EPOCH = (
        75,
        _R | _D,
        "The requested leader epoch is newer than the partition's.",
    )
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        _D,
        "The client's version cannot read this compression type.",
    )
    STALE_BROKER_EPOCH = (77, _D, "The broker epoch is not the current registration's.")
    OFFSET_NOT_AVAILABLE = (
        78,
        _R | _D,
        "A new leader's high watermark is not known to be current yet.",
    )
    MEMBER_ID_REQUIRED = (79, _D, "Join again with the member id in this answer.")
    PREFERRED_LEADER_NOT_AVAILABLE = (
        80,
        _R | _D,
        "The preferred leader is down or not in the ISR.",
    )
    GROUP_MAX_SIZE_REACHED = (81, _D, "The group is full.")
    FENCED_INSTANCE_ID = (82, _D, "Another member has taken this group.instance.id.")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, _R | _D, "No replica is eligible to become leader.")
    ELECTION_NOT_NEEDED = (84, _R | _D, "No election is needed.")
    NO_REASSIGNMENT_IN_PROGRESS = (85, _D, "The partition is not being reassigned.")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, _D, "The group is subscribed to this topic.")
    INVALID_RECORD = (87, _D, "A record breaks a rule of the topic.")
    UNSTABLE_OFFSET_COMMIT = (88, _R | _D, "Offsets of an open transaction are pending.")
    THROTTLING_QUOTA_EXCEEDED = (
        89,
        _R | _D,
        "The quota is exceeded; wait for the throttle time in the answer.",
    )
    PRODUCER_FENCED = (90, _D, "A newer producer has this transactional id.")
    RESOURCE_NOT_FOUND = (91, _D, "There is no such resource.")
    DUPLICATE_RESOURCE = (92, _D, "The request names the same resource twice.")
    UNACCEPTABLE_CREDENTIAL = (93, _D, "The credential is not strong or long enough.")
    INCONSISTENT_VOTER_SET = (
        94,
        _D,
        "The sender or the receiver is not one of the quorum's voters.",
    )
    INVALID_UPDATE_VERSION = (95, _D, "The requested feature level is not possible.")
    FEATURE_UPDATE_FAILED = (96, 0, "The feature update failed inside the controller.")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, _D, "A forwarded principal cannot be read.")
    SNAPSHOT_NOT_FOUND = (98, _D, "There is no such snapshot.")
    POSITION_OUT_OF_RANGE = (99, _D, "The position lies outside the snapshot.")
    UNKNOWN_TOPIC_ID = (100, _R | _D, "This broker does not know a topic with this id.")
    DUPLICATE_BROKER_REGISTRATION = (101, _D, "Another running broker has this broker id.")
    BROKER_ID_NOT_REGISTERED = (102, _D, "No broker with this id is registered.")
    INCONSISTENT_TOPIC_ID = (103, _R | _D, "The log belongs to another topic id.")
    INCONSISTENT_CLUSTER_ID = (104, _D, "The request is meant for another cluster.")
    TRANSACTIONAL_ID_NOT_FOUND = (105, _D, "There is no such transactional id.")
    FETCH_SESSION_TOPIC_ID_ERROR = (
        106,
        _R | _D,
        "The fetch session mixes requests with and without topic ids.",
    )
    INELIGIBLE_REPLICA = (107, _D, "A replica proposed for the ISR is not eligible to join it.")
    NEW_LEADER_ELECTED = (108, 0, "The ISR was changed, and the leader with it.")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, _D, "The offset is in the remote tier only.")
    FENCED_MEMBER_EPOCH = (
        110,
        _D,
        "The member's epoch was fenced; leave all partitions and join again.",
    )
    UNRELEASED_INSTANCE_ID = (111, _D, "The member that holds this instance id must leave first.")
    UNSUPPORTED_ASSIGNOR = (112, _D, "The group cannot use this assignor.")
    STALE_MEMBER_EPOCH = (113, _D, "The member's epoch is outdated; retry after a heartbeat.")
    MISMATCHED_ENDPOINT_TYPE = (
        114,
        _D,
        "A request for a broker reached a controller, or the other way round.",
    )
    UNSUPPORTED_ENDPOINT_TYPE = (115, _D, "This kind of endpoint is not supported.")
    UNKNOWN_CONTROLLER_ID = (116, _D, "No controller with this id is registered.")
    UNKNOWN_SUBSCRIPTION_ID = (117, _D, "The telemetry subscription is not the current one.")
    TELEMETRY_TOO_LARGE = (118, _D, "The telemetry is larger than telemetry.max.bytes.")
    INVALID_REGISTRATION = (119, _D, "The controller refuses this registration.")
    TRANSACTION_ABORTABLE = (
        120,
        _D,
        "The transaction must be aborted; the producer may continue with the next one.",
    )
    INVALID_RECORD_STATE = (121, _D, "The record cannot be acknowledged in its state.")
    SHARE_SESSION_NOT_FOUND = (122, _R | _D, "The broker does not know the share session.")
    INVALID_SHARE_SESSION_EPOCH = (123, _R | _D, "The share session's epoch is not the next one.")
    FENCED_STATE_EPOCH = (124, _D, "The state epoch is outdated.")
    INVALID_VOTER_KEY = (125, _D, "The voter's key is not that of the receiver.")
    DUPLICATE_VOTER = (126, _D, "The voter is already in the set.")
    VOTER_NOT_FOUND = (127, _D, "The voter is not in the set.")
    INVALID_REGULAR_EXPRESSION = (128, _D, "The regular expression does not compile.")
    REBOOTSTRAP_REQUIRED = (
        129,
        _D,
        "The client's metadata is outdated; it must start again from its bootstrap servers.",
    )
    STREAMS_INVALID_TOPOLOGY = (130, _D, "The streams topology is invalid.")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, _D, "The streams topology's epoch is invalid.")
    STREAMS_TOPOLOGY_FENCED = (132, _D, "The streams topology's epoch is outdated.")
    SHARE_SESSION_LIMIT_REACHED = (
        133,
        _R | _D,
        "The broker has reached its limit of share sessions.",
    )
    GROUP_DELETION_FAILED = (134, 0, "The group could not be deleted; the message says why.")
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = (
        135,
        0,
        "The description of the streams topology could not be stored; the message says why.",
    )
    CONTROLLER_ID_NOT_REGISTERED = (136, _D, "The controller id is not registered.")
    # fmt: on


NONE: Final = ErrorCode.NONE
"""The only falsy error.  The constant exists because enum members are slow to look up."""

_BY_CODE: Final = {int(error): error for error in ErrorCode}


def error_of(code: int) -> ErrorCode:
    """The error with this code: a message's `error_code` may be a bare number."""
    return _BY_CODE.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
