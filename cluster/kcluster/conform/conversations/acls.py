"""ACLs created, described and deleted, and rights that change under an open connection.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import fetch
from kcluster.conform.case import Ask, Conversation, LogIn, Sleep, Step, passed_on
from kcluster.conform.rights import Right, allow, deny
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey
from kcluster.security.acls import AclOperation, AclPermission, AclResource, PatternType

CREATE, DESCRIBE, DELETE = ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS, ApiKey.DELETE_ACLS
ANY, UNKNOWN = 1, 0
SETTLE = Sleep(300)
MASKS = {"brokers": "as for everyone", "auth_bytes": "a nonce is drawn at random"}
MATCH, LITERAL, PREFIXED = (
    PatternType.MATCH.code,
    PatternType.LITERAL.code,
    PatternType.PREFIXED.code,
)


def of_user(*rights: Right, user: str = "User:{user}") -> JsonObject:
    return {"creations": [{"principal": user, **right} for right in rights]}


def filtered(
    kind: int = ANY,
    name: str | None = None,
    pattern: int = ANY,
    user: str | None = "User:{user}",
    host: str | None = None,
    operation: int = ANY,
    permission: int = ANY,
) -> JsonObject:
    return {
        "resource_type_filter": kind,
        "resource_name_filter": name,
        "pattern_type_filter": pattern,
        "principal_filter": user,
        "host_filter": host,
        "operation": operation,
        "permission_type": permission,
    }


def described(
    note: str, kind: int = ANY, name: str | None = None, pattern: int = ANY, **more: object
) -> Ask:
    return Ask(DESCRIBE, filtered(kind, name, pattern, **passed_on(more)), note=note)


def deleted(note: str, *filters: object, on: str = "") -> Ask:
    return Ask(DELETE, {"filters": list(filters)}, on=on, note=note)


TOPIC, GROUP = AclResource.TOPIC.code, AclResource.GROUP.code
MANY = (
    allow("read", topic="{fresh}"), allow("read", "10.0.0.5", topic="{fresh}"),
    deny("write", topic="{fresh}"), allow("all", topic="{fresh}"), allow("read", topic="{tag}*"),
    allow("read", topic="*"), allow("describe", topic="{topic}"), allow("read", group="{fresh}"),
    allow("describe", cluster=True), allow("write", transactional_id="{fresh}"),
    allow("describe", delegation_token="{fresh}"), allow("create_tokens", user="User:{user}"),
    allow("read", topic="{tag}"),
)  # fmt: skip
BAD = {
    "a group's write": allow("write", group="{fresh}"),
    "a topic's cluster action": allow("cluster_action", topic="{fresh}"),
    "a cluster of another name": {**allow("describe", cluster=True), "resource_name": "other"},
    "an empty name": allow("read", topic=""),
    "any type": {**allow("read", topic="{fresh}"), "resource_type": ANY},
    "match": {**allow("read", topic="{fresh}"), "resource_pattern_type": MATCH},
    "any operation": allow("any", topic="{fresh}"),
    "any permission": {**allow("read", topic="{fresh}"), "permission_type": ANY},
    "no host": allow("read", "", topic="{fresh}"),
    "a host by name": allow("read", "localhost", topic="{fresh}"),
    "a network": allow("read", "10.0.0.0/8", topic="{fresh}"),
    "no principal": {**allow("read", topic="{fresh}"), "principal": ""},
    "a principal without a type": {**allow("read", topic="{fresh}"), "principal": "{user}"},
    "a principal without a name": {**allow("read", topic="{fresh}"), "principal": "User:"},
    "a principal of another type": {**allow("read", topic="{fresh}"), "principal": "Role:{user}"},
    "a prefix of everything": {**allow("read", topic="*"), "resource_pattern_type": PREFIXED},
    "a user without a type": allow("create_tokens", user="{user}"),
}  # fmt: skip


def story(name: str, *steps: Step, **more: str) -> Conversation:
    return Conversation(name, steps, mask={**MASKS, **more}, is_secured=True)


def reads(note: str, epoch: int, session: object = "{session}", **more: object) -> Ask:
    body = fetch(0, "{fresh}", "{fresh_id}", request={
        "session_id": session, "session_epoch": epoch})  # fmt: skip
    return Ask(ApiKey.FETCH, body, on="user", note=note, **passed_on(more))


CONVERSATIONS = (
    story(
        "acls created, described, deleted",
        Ask(CREATE, of_user(*MANY), note="many"),
        Ask(CREATE, of_user(MANY[0], MANY[0], allow("alter", topic="{fresh}")), note="again"),
        SETTLE,
        described("all of the user"), described("of topics", TOPIC),
        described("by a name", TOPIC, "{fresh}"),
        described("by a literal name", TOPIC, "{fresh}", LITERAL),
        described("by a prefix", TOPIC, "{tag}", PREFIXED),
        described("that match", TOPIC, "{fresh}", MATCH),
        described("of any type that match", ANY, "{fresh}", MATCH),
        described("that match the wildcard", TOPIC, "*", MATCH),
        described("by the wildcard", TOPIC, "*", LITERAL),
        described("from a host", host="10.0.0.5"), described("from any host", host="*"),
        described("by an operation", operation=AclOperation.READ.code),
        described("denied", permission=AclPermission.DENY.code),
        described("of nobody", user="User:nobody"),
        described("of a user without a type", user="{user}"),
        described("of no user", user=""), described("by no name", TOPIC, ""),
        *(Ask(DESCRIBE, filtered(TOPIC), version, note=f"by v{version}") for version in (1, 2)),
        deleted("nothing", filtered(GROUP, "nosuch")), deleted("by no filter"),
        deleted("by a filter twice", filtered(GROUP), filtered(GROUP)),
        deleted("by several", filtered(TOPIC, "{fresh}", LITERAL, operation=3), filtered(
            TOPIC, "{fresh}", MATCH, permission=AclPermission.DENY.code)),
        SETTLE, described("what is left"),
        deleted("the rest", filtered()), SETTLE, described("nothing is left"),
    ),
    story(
        "acls that are refused",
        *(Ask(CREATE, of_user(right), note=f"{name}") for name, right in BAD.items()),
        Ask(CREATE, of_user(MANY[0], BAD["no host"], MANY[2]), note="one of three"), SETTLE,
        described("what was created"), described("of another", user="User:"),
        deleted("some filters are wrong", filtered(TOPIC, pattern=UNKNOWN)),
        deleted("the rest", *(filtered(user=f"User:{name}") for name in ("{user}", ""))),
    ),
    story(
        "rights that change under an open connection",
        LogIn("{user}", "user", note="the user logs in"),
        reads("without the right", 0, 0, save={"session": "session_id"}),
        Ask(CREATE, of_user(allow("read", topic="{fresh}")), only_waits=True), SETTLE,
        reads("a session, with the right", 0, 0, save={"session": "session_id"}),
        reads("on", 1),
        deleted("the right is taken", filtered()), SETTLE,
        reads("denied", 2), reads("denied again", 3),
        Ask(CREATE, of_user(allow("read", topic="{tag}*")), only_waits=True), SETTLE,
        reads("by a prefix", 4),
        Ask(CREATE, of_user(deny("all", "127.0.0.1", topic="{fresh}")), only_waits=True), SETTLE,
        reads("denied from this host", 5),
        Ask(CREATE, of_user(allow("alter", cluster=True)), only_waits=True), SETTLE,
        deleted("by the user", filtered(permission=AclPermission.DENY.code), on="user"), SETTLE,
        reads("allowed by itself", 6),
        Ask(CREATE, of_user(allow("read", topic="{fresh}")), on="user", note="by the user"),
        Ask(DESCRIBE, filtered(), on="user", note="it may describe what it may alter"),
        deleted("everything", filtered(), on="user"), SETTLE,
        deleted("everything again", filtered(), on="user"),
    ),
)  # fmt: skip
