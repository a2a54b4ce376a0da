"""CreateAcls and DeleteAcls (APIs 30 and 31): the ACLs in the metadata.

Owns: the acceptance of ACLs, their ids, and the records for them.  Never: decides by an ACL
(security/authorizer.py does), answers DescribeAcls (brokers do, from their images).
Kafka: AclControlManager, AclApis; KIP-801.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kcluster.controller.outcome import ApiError
from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.events.security import AclsChanged
from kcluster.metadata.records import (
    AccessControlEntryRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.security.acls import (
    CLUSTER_NAME,
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResource,
    PatternType,
    filter_of,
    from_code,
)

if TYPE_CHECKING:
    _Creation = m.CreateAclsRequest.AclCreation
    _Filter = m.DeleteAclsRequest.DeleteAclsFilter

MAX_RECORDS: Final = 10_000
"""The most ACLs that one request deletes.  Kafka: QuorumController.MAX_RECORDS_PER_USER_OP."""
_ANY: Final = AclResource.ANY.code
_MATCH: Final = PatternType.MATCH.code
_OK: Final = ApiError(ErrorCode.NONE, "")


class AclControl:
    """The ACLs in the metadata.  `initial`: those of the topology, for a new cluster."""

    def __init__(
        self, metadata: MetadataPort, is_enabled: bool, initial: Sequence[Acl] = ()
    ) -> None:
        self._metadata = metadata
        self._is_enabled = is_enabled
        self._initial = initial

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        if not self._is_enabled:
            return {}
        return {"CreateAclsRequest": self.create_acls, "DeleteAclsRequest": self.delete_acls}

    def initial_records(self) -> list[MetadataRecord]:
        """The records that a new cluster's log begins with."""
        return self._creations(list(dict.fromkeys(self._initial)))

    def create_acls(self, request: m.CreateAclsRequest, _now_ms: int) -> m.CreateAclsResponse:
        """Create ACLs.  One that exists already is answered like a new one."""
        creations = request.creations
        response = m.CreateAclsResponse
        if any(map(_names_no_acl, creations)):
            result = response.AclCreationResult(ErrorCode.UNKNOWN_SERVER_ERROR, None)
            return response(results=[result for _ in creations])
        existing = set(self._metadata.image.acls.by_id.values())
        wanted: dict[Acl, None] = {}
        errors = []
        for creation in creations:
            acl = _acl_of(creation)
            error = _problem(acl)
            errors.append(error)
            if not error.code and acl not in existing:
                wanted[acl] = None
        self._commit(self._creations(list(wanted)), tuple(wanted), ())
        return response(
            results=[response.AclCreationResult(error.code, error.message) for error in errors]
        )

    def delete_acls(self, request: m.DeleteAclsRequest, _now_ms: int) -> m.DeleteAclsResponse:
        """Delete the ACLs that filters find.  As in Kafka, every filter is answered with what it
        finds, even if an earlier one found the same."""
        response = m.DeleteAclsResponse
        deleted: dict[bytes, Acl] = {}
        results = []
        for wanted in request.filters:
            problem = _filter_problem(wanted)
            if problem is not None:
                results.append(response.DeleteAclsFilterResult(problem.code, problem.message))
                continue
            found = self._found_by(filter_of(wanted))
            deleted |= found
            if len(deleted) > MAX_RECORDS:
                return _too_many(request)
            results.append(
                response.DeleteAclsFilterResult(
                    ErrorCode.NONE, None, [_matching(acl) for acl in found.values()]
                )
            )
        removals: list[MetadataRecord] = [
            RemoveAccessControlEntryRecord(acl_id) for acl_id in deleted
        ]
        self._commit(removals, (), tuple(deleted.values()))
        return response(filter_results=results)

    def _found_by(self, wanted: AclFilter) -> dict[bytes, Acl]:
        by_id = self._metadata.image.acls.by_id
        return {acl_id: acl for acl_id, acl in by_id.items() if wanted.matches(acl)}

    def _creations(self, acls: Sequence[Acl]) -> list[MetadataRecord]:
        taken, rng = self._metadata.image.acls.by_id, self._metadata.rng
        records: dict[bytes, MetadataRecord] = {}
        for acl in acls:
            acl_id = rng.randbytes(16)
            while acl_id in taken or acl_id in records:
                acl_id = rng.randbytes(16)
            records[acl_id] = AccessControlEntryRecord(acl_id, acl)
        return list(records.values())

    def _commit(
        self, records: list[MetadataRecord], added: tuple[Acl, ...], removed: tuple[Acl, ...]
    ) -> None:
        if not records:
            return
        cause = self._metadata.note(AclsChanged(added, removed))
        self._metadata.commit([_caused(record, cause) for record in records])


def _caused(record: MetadataRecord, cause: tuple[int, int]) -> MetadataRecord:
    if isinstance(record, AccessControlEntryRecord):
        return AccessControlEntryRecord(record.acl_id, record.acl, cause)
    assert isinstance(record, RemoveAccessControlEntryRecord), record
    return RemoveAccessControlEntryRecord(record.acl_id, cause)


def _names_no_acl(creation: _Creation) -> bool:
    """Whether a creation has a code that only filters may have, which fails the whole request.
    Kafka: the IllegalArgumentException of ResourcePattern and AccessControlEntryData."""
    pattern_type = creation.resource_pattern_type
    return pattern_type == _MATCH or _ANY in (
        creation.resource_type, pattern_type, creation.operation, creation.permission_type
    )  # fmt: skip


def _acl_of(creation: _Creation) -> Acl:
    return Acl(
        from_code(AclResource, creation.resource_type),
        creation.resource_name,
        from_code(PatternType, creation.resource_pattern_type),
        creation.principal,
        creation.host,
        from_code(AclOperation, creation.operation),
        from_code(AclPermission, creation.permission_type),
    )


def _problem(acl: Acl) -> ApiError:
    """Why an ACL is refused.  The messages are Kafka's, in its order."""
    text = ""
    if acl.resource_type is AclResource.CLUSTER and acl.resource_name != CLUSTER_NAME:
        text = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not acl.resource_name:
        text = "Invalid empty resource name"
    elif acl.resource_type is AclResource.UNKNOWN:
        text = "Invalid resourceType UNKNOWN"
    elif acl.pattern_type is PatternType.UNKNOWN:
        text = "Invalid patternType UNKNOWN"
    elif acl.operation is AclOperation.UNKNOWN:
        text = "Invalid operation UNKNOWN"
    elif acl.permission is AclPermission.UNKNOWN:
        text = "Invalid permissionType UNKNOWN"
    elif ":" not in acl.principal:
        text = (
            f"Could not parse principal from `{acl.principal}` (no colon is present separating the"
            " principal type from the principal name)"
        )
    elif not acl.host:
        text = "Host pattern cannot be null or empty"
    return ApiError(ErrorCode.INVALID_REQUEST, text) if text else _OK


def _filter_problem(wanted: _Filter) -> ApiError | None:
    """Why a filter is refused: a code of a later version."""
    found = filter_of(wanted)
    if found.resource_type is AclResource.UNKNOWN or found.pattern_type is PatternType.UNKNOWN:
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    if found.operation is AclOperation.UNKNOWN or found.permission is AclPermission.UNKNOWN:
        return ApiError(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    return None


def _matching(acl: Acl) -> m.DeleteAclsResponse.DeleteAclsMatchingAcl:
    return m.DeleteAclsResponse.DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type.code,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type.code,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation.code,
        permission_type=acl.permission.code,
    )


def _too_many(request: m.DeleteAclsRequest) -> m.DeleteAclsResponse:
    """The refusal of a request that would delete too much; it deletes nothing."""
    text = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
    result = m.DeleteAclsResponse.DeleteAclsFilterResult
    return m.DeleteAclsResponse(
        filter_results=[result(ErrorCode.INVALID_REQUEST, text) for _ in request.filters]
    )
