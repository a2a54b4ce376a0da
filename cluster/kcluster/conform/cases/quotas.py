"""Quotas of clients, and credentials of users (SCRAM).

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from kcluster.conform.case import Ask, Case, Sleep, Step, passed_on
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

DESCRIBE, ALTER = ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS
USERS, SCRAM = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS
EXACT, DEFAULT, ANY = 0, 1, 2
SHA_256, SHA_512 = 1, 2

PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"
REQUESTS, MUTATIONS = "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"

Names = Mapping[str, str | None]
Op = tuple[str, float | None]

USER: Names = {"user": "compare-user"}
CLIENT: Names = {"client-id": "compare-client"}
BOTH: Names = {**USER, **CLIENT}
"""Fixed names, for answers come in the order of their hash codes."""

IP: Names = {"ip": "10.9.8.7"}
NOBODY: Names = {}


def entry(names: Names, *ops: Op) -> JsonObject:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in names.items()],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
    }


def altered(*entries: JsonObject, dry: bool = False) -> JsonObject:
    return {"entries": list(entries), "validate_only": dry}


def dry(name: str, names: Names, *ops: Op) -> Case:
    """Nothing is changed: other cases share this cluster."""
    return Case(name, ALTER, altered(entry(names, *ops), dry=True))


def kept(name: str, *entries: JsonObject) -> Case:
    """Set, described, undone, described again; each once the broker knows of it."""
    undo = altered(
        *(
            entry(names, *((key, None) for key in (PRODUCE, CONSUME, REQUESTS, MUTATIONS)))
            for names in (USER, CLIENT, BOTH)
        )
    )
    after: tuple[Step, ...] = (
        Sleep(300),
        Ask(DESCRIBE, described(("user", EXACT, "compare-user"))),
        Ask(DESCRIBE, described(("client-id", EXACT, "compare-client"))),
        Ask(DESCRIBE, described(("user", EXACT, "compare-user"), strict=True)),
        Ask(DESCRIBE, described(("user", EXACT, "compare-user"), ("client-id", ANY, None))),
        Ask(ALTER, undo),
        Sleep(300),
        Ask(DESCRIBE, described(("user", EXACT, "compare-user"))),
    )
    return Case(name, ALTER, altered(*entries), after=after)


def described(*components: tuple[str, int, str | None], strict: bool = False) -> JsonObject:
    return {
        "components": [
            {"entity_type": kind, "match_type": how, "match": name}
            for kind, how, name in components
        ],
        "strict": strict,
    }


def describe(name: str, *components: tuple[str, int, str | None]) -> Case:
    return Case(f"describe, {name}", DESCRIBE, described(*components))


def setting(
    user: str, mechanism: int = SHA_256, iterations: int = 4096, password: bytes = b"hashed"
) -> JsonObject:
    return {
        "name": user,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": b"salt",
        "salted_password": password,
    }


def scram(
    name: str,
    *,
    remove: tuple[tuple[str, int], ...] = (),
    put: tuple[JsonObject, ...] = (),
    **more: object,
) -> Case:
    deletions = [{"name": user, "mechanism": mechanism} for user, mechanism in remove]
    return Case(
        f"scram, {name}",
        SCRAM,
        {"deletions": deletions, "upsertions": list(put)},
        **passed_on(more),
    )


def users(*names: str) -> JsonObject:
    return {"users": [{"name": name} for name in names]}


CASES = (
    kept("quotas of a user", entry(USER, (PRODUCE, 100), (CONSUME, 200), (REQUESTS, 5.5))),
    kept("quotas of a client id", entry(CLIENT, (MUTATIONS, 1.5), (PRODUCE, 100))),
    kept("quotas of a user's client", entry(BOTH, (PRODUCE, 100)), entry(USER, (PRODUCE, 50))),
    kept("quotas of three, one refused", entry(USER, (PRODUCE, 1)), entry(CLIENT, ("nosuch", 1))),
    kept("quotas, an entity twice", entry(USER, (PRODUCE, 1)), entry(USER, (CONSUME, 2))),
    kept("quotas, a key twice", entry(USER, (PRODUCE, 1), (PRODUCE, 2))),
    kept("quotas, a key that is not there removed", entry(USER, (PRODUCE, None), ("nosuch", None))),
    Case("no quotas", ALTER, altered()),
    *(
        dry(f"quotas of {name}", names, (key, 1.0))
        for name, names, key in (
            ("all users", {"user": None}, PRODUCE),
            ("all clients of all users", {"user": None, "client-id": None}, MUTATIONS),
            ("an address", IP, CONNECTIONS), ("all addresses", {"ip": None}, CONNECTIONS),
            ("an address of v6", {"ip": "::1"}, CONNECTIONS),
            ("localhost", {"ip": "localhost"}, CONNECTIONS),
            ("nobody", NOBODY, PRODUCE), ("a nameless user", {"user": ""}, PRODUCE),
            ("a nameless client", {"client-id": ""}, PRODUCE), ("a group", {"group": "g"}, PRODUCE),
            ("half an address", {"ip": "10.0.x"}, CONNECTIONS),
            ("a user's address", {**IP, "user": "a"}, CONNECTIONS),
            ("an address, of bytes", IP, PRODUCE), ("a user, of connections", USER, CONNECTIONS),
            ("a user, unknown", USER, "nosuch"), ("a user, nameless", USER, ""),
            ("a user, of replication", USER, "leader.replication.throttled.rate"),
            ("a user, of passwords", USER, "SCRAM-SHA-256"),
        )
    ),
    *(
        dry(f"quotas, {key} {value}", IP if key == CONNECTIONS else USER, (key, value))
        for key, value in (
            (PRODUCE, 0.0), (PRODUCE, -1.0), (PRODUCE, 1.5), (PRODUCE, 1e19), (PRODUCE, 9e18),
            (PRODUCE, 2.0**63), (PRODUCE, 1.0000001), (PRODUCE, float("nan")),
            (PRODUCE, float("inf")), (CONSUME, 1e-9), (REQUESTS, 0.0), (REQUESTS, 1e-9),
            (REQUESTS, 1e300), (REQUESTS, float("inf")), (MUTATIONS, 0.5), (MUTATIONS, -0.5),
            (CONNECTIONS, 2.0**31), (CONNECTIONS, 2.0**31 - 1), (CONNECTIONS, 0.5),
        )
    ),
    Case(
        "quotas, many entities in order", ALTER,
        altered(*(entry({"user": name}, (PRODUCE, 1)) for name in "fedcba"),
                *(entry({"client-id": None, "user": name}, (PRODUCE, 1)) for name in "xyz"),
                entry({"user": None}, (PRODUCE, 1)), dry=True),
    ),
    Case(
        "quotas, a type twice", ALTER,
        altered(
            {"entity": [{"entity_type": "user", "entity_name": name} for name in "ab"],
             "ops": [{"key": PRODUCE, "value": 1.0}]},
            dry=True,
        ),
    ),
    describe("of a user without", ("user", EXACT, "{user}")),
    describe("of a type without a name", ("", EXACT, "a")),
    describe("of an unknown type", ("group", EXACT, "a")),
    describe("exactly nothing", ("user", EXACT, None)),
    describe("a default with a name", ("user", DEFAULT, "a")),
    describe("any with a name", ("user", ANY, "a")),
    describe("in an unknown way", ("user", 3, None)),
    describe("in a way below all", ("user", -1, "a")),
    describe("a type twice", ("user", EXACT, "{user}"), ("user", ANY, None)),
    describe("an address and a user", ("ip", EXACT, "10.9.8.7"), ("user", EXACT, "{user}")),
    describe("an unknown type twice", ("group", EXACT, "a"), ("group", EXACT, "a")),
    Case("describe, strictly nobody", DESCRIBE, described(strict=True)),

    scram(
        "set and removed", put=(setting("{user}"),),
        after=(
            Sleep(300),
            Ask(USERS, users("{user}")),
            Ask(SCRAM, {"upsertions": [setting("{user}", SHA_512, 16384)]}),
            Sleep(300),
            Ask(USERS, users("{user}")),
            Ask(SCRAM, {"deletions": [{"name": "{user}", "mechanism": SHA_256}]}),
            Ask(SCRAM, {"deletions": [{"name": "{user}", "mechanism": SHA_512}]}),
            Sleep(300),
            Ask(USERS, users("{user}"), may_fail=True),
        ),
    ),
    scram("nothing"),
    scram("nobody", put=(setting(""),)),
    scram("too few iterations", put=(setting("{user}", iterations=4095),)),
    scram("too many iterations", put=(setting("{user}", SHA_512, 16385),)),
    scram("no mechanism", put=(setting("{user}", 0),)),
    scram("an unknown mechanism", put=(setting("{user}", 3),)),
    scram("an empty password", put=(setting("{user}", password=b""),)),
    scram("a user twice", put=(setting("{user}"), setting("{user}", SHA_512))),
    scram("removed and set", remove=(("{user}", SHA_256),), put=(setting("{user}"),)),
    scram("removed where there is none", remove=(("{user}", SHA_256),)),
    scram("removed from nobody", remove=(("", SHA_256),)),
    scram("removed, an unknown mechanism", remove=(("{user}", 9),)),
    scram("removed twice", remove=(("{user}", SHA_256), ("{user}", SHA_256))),
    scram(
        "many in order",
        remove=(("e", SHA_256), ("", SHA_256), ("g", SHA_256)),
        put=(setting("f", 0), setting("b", iterations=1), setting("a", 5)),
    ),
    Case("users, one unknown", USERS, users("{user}")),
    Case("users, one twice", USERS, users("{user}", "{user}")),
    Case("users, one twice and one unknown", USERS, users("b", "a", "b")),
    Case("users, nameless", USERS, users("")),
    Case("users, several in order", USERS, users("zz", "b", "aa", "b", "c")),
)  # fmt: skip
