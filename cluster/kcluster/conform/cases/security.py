"""ACLs, SASL and delegation tokens, of a cluster without any of them.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import Case
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

DESCRIBE, CREATE, DELETE = ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS
NEW_TOKEN = ApiKey.CREATE_DELEGATION_TOKEN
RENEW, EXPIRE = ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN
TOKENS = ApiKey.DESCRIBE_DELEGATION_TOKEN
UNKNOWN, ANY, NO_CODE = 0, 1, 99

FILTER = {
    "resource_type_filter": 2, "resource_name_filter": "{topic}", "pattern_type_filter": 3,
    "principal_filter": None, "host_filter": None, "operation": ANY, "permission_type": ANY,
}  # fmt: skip
ACL = {
    "resource_type": 2, "resource_name": "{topic}", "resource_pattern_type": 3,
    "principal": "User:{user}", "host": "*", "operation": 3, "permission_type": 3,
}  # fmt: skip


def created(*changes: JsonObject) -> JsonObject:
    return {"creations": [{**ACL, **change} for change in changes]}


def deleted(*changes: JsonObject) -> JsonObject:
    return {"filters": [{**FILTER, **change} for change in changes]}


CASES = (
    Case("acls", DESCRIBE, FILTER),
    Case("all acls", DESCRIBE, {**FILTER, "resource_type_filter": ANY, "pattern_type_filter": ANY}),
    *(
        Case(f"acls, {field} {code}", DESCRIBE, {**FILTER, field: code})
        for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
        for code in (UNKNOWN, NO_CODE)
    ),
    Case("create acls", CREATE, created({}, {})),
    Case("create no acls", CREATE, created()),
    *(
        Case(f"create acls, {field} {code!r}", CREATE, created({}, {field: code}))
        for field, code in (
            ("resource_type", ANY), ("resource_type", UNKNOWN), ("resource_type", NO_CODE),
            ("resource_name", ""), ("resource_pattern_type", 2), ("resource_pattern_type", UNKNOWN),
            ("principal", "nobody"), ("host", ""), ("operation", UNKNOWN), ("operation", ANY),
            ("permission_type", UNKNOWN), ("permission_type", ANY),
        )
    ),
    Case("delete acls", DELETE, deleted({}, {})),
    Case("delete no acls", DELETE, deleted()),
    *(
        Case(f"delete acls, {field} {code}", DELETE, deleted({}, {field: code}))
        for field in ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
        for code in (UNKNOWN, NO_CODE)
    ),

    Case("a token", NEW_TOKEN, {"max_lifetime_ms": 1000}),
    Case(
        "a token for another", NEW_TOKEN,
        {"owner_principal_type": "User", "owner_principal_name": "{user}", "max_lifetime_ms": -1},
    ),
    Case(
        "a token for a name without a type", NEW_TOKEN, {"owner_principal_name": "{user}"},
        versions="3",
    ),
    Case(
        "a token for a nameless user", NEW_TOKEN,
        {"owner_principal_type": "User", "owner_principal_name": ""},
    ),
    Case(
        "a token renewed by a group", NEW_TOKEN,
        {"renewers": [{"principal_type": "Group", "principal_name": "g"}]},
    ),
    Case("renew a token", RENEW, {"hmac": b"abc", "renew_period_ms": 1000}),
    Case("renew no token", RENEW, {"hmac": b"", "renew_period_ms": -1}),
    Case("expire a token", EXPIRE, {"hmac": b"abc", "expiry_time_period_ms": -1}),
    Case("all tokens", TOKENS, {"owners": None}),
    Case("tokens of nobody", TOKENS, {"owners": []}),
    Case(
        "tokens of a user", TOKENS,
        {"owners": [{"principal_type": "User", "principal_name": "{user}"}]},
    ),

    Case("sasl handshake", ApiKey.SASL_HANDSHAKE, {"mechanism": "PLAIN"}),
    Case("sasl handshake, no such mechanism", ApiKey.SASL_HANDSHAKE, {"mechanism": ""}),
    Case("sasl authenticate", ApiKey.SASL_AUTHENTICATE, {"auth_bytes": b"\0user\0secret"}),
    Case("sasl authenticate, nothing", ApiKey.SASL_AUTHENTICATE, {"auth_bytes": b""}),
)  # fmt: skip
