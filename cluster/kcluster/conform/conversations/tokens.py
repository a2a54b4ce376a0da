"""Delegation tokens: who may create, renew, expire and see them, and what a login by one may do.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import Ask, Connect, Conversation, LogIn, Sleep, Step, passed_on
from kcluster.conform.conversations.logins import NONCES, asked
from kcluster.conform.rights import Right, allow
from kcluster.protocol.apis import ApiKey

CREATE, DESCRIBE = ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN
RENEW, EXPIRE = ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN
SETTLE = Sleep(300)
HOUR_MS = 3_600_000
SHA_256 = "SCRAM-SHA-256"

TIMES = {
    f"{which}_timestamp{unit}": "a time"
    for which in ("issue", "expiry", "max")
    for unit in ("", "_ms")
}
MASKS = {
    **NONCES, **TIMES, "brokers": "as for everyone",
    "session_lifetime_ms": "what is left of the token",
}  # fmt: skip


def principal(name: str, kind: str = "User") -> dict[str, str]:
    return {"principal_type": kind, "principal_name": name}


def user(name: str) -> Step:
    """A connection of a user, by the name of the user."""
    return LogIn("{user}." + name, name, note=f"{name} logs in")


def created(by: str, note: str, *renewers: str, as_: str = "other_", **more: object) -> Ask:
    """Its id and HMAC become {token} and {hmac}, with `as_` before them."""
    body = {
        "renewers": [principal("{user}." + name) for name in renewers],
        "max_lifetime_ms": HOUR_MS,
        **more,
    }
    saved = {f"{as_}token": "token_id", f"{as_}hmac": "hmac"}
    return Ask(CREATE, body, on=by, save=saved, note=note)


def for_owner(by: str, owner: str, note: str, **more: object) -> Ask:
    return created(
        by,
        note,
        owner_principal_type="User",
        owner_principal_name="{user}." + owner,
        **passed_on(more),
    )


def described(by: str, note: str, *owners: str, version: int = -1) -> Ask:
    """The tokens of owners of this run."""
    names = owners or ("owner", "other", "ward")
    body = {"owners": [principal("{user}." + name) for name in names]}
    return Ask(DESCRIBE, body, version, on=by, note=note)


def renewed(by: str, note: str, period_ms: int = HOUR_MS, hmac: object = "{hmac}") -> Ask:
    return Ask(RENEW, {"hmac": hmac, "renew_period_ms": period_ms}, on=by, note=note)


def expired(by: str, note: str, period_ms: int = HOUR_MS, hmac: object = "{hmac}") -> Ask:
    return Ask(EXPIRE, {"hmac": hmac, "expiry_time_period_ms": period_ms}, on=by, note=note)


def given(name: str, *rights: Right) -> tuple[Step, ...]:
    """Rights for a user of this run."""
    creations = [{"principal": f"User:{{user}}.{name}", **right} for right in rights]
    return Ask(ApiKey.CREATE_ACLS, {"creations": creations}, only_waits=True), SETTLE


def by_token(on: str, note: str, hmac: object = "{hmac}", **more: object) -> LogIn:
    return LogIn("{token}", on, SHA_256, hmac, by_token=True, note=note, **passed_on(more))


def story(name: str, *steps: Step) -> Conversation:
    return Conversation(name, steps, mask=MASKS, is_secured=True)


CONVERSATIONS = (
    story(
        "a delegation token",
        *(user(name) for name in ("owner", "renewer", "other", "sees", "reads")),
        *given("sees", allow("describe_tokens", user="User:{user}.owner")),
        *given("reads", allow("describe", delegation_token="*")),
        created("", "of a client without a login"),
        created("owner", "the owner creates one", "renewer", as_=""), SETTLE,
        *(described(name, f"seen by {name}")
          for name in ("owner", "renewer", "other", "sees", "reads", "")),
        Ask(DESCRIBE, {"owners": [principal("{user}.owner", "Group")]}, on="owner",
            note="tokens of a group"),
        renewed("owner", "renewed by the owner"), renewed("renewer", "renewed by the renewer"),
        renewed("other", "renewed by another"), renewed("", "renewed without a login"),
        renewed("owner", "renewed, by default", -1), renewed("owner", "renewed for nothing", 0),
        renewed("owner", "renewed, one that is not there", hmac=b"abc"),
        renewed("owner", "renewed past its end", 10 * HOUR_MS),
        by_token("t", "a login by it"), asked("t"),
        created("t", "a token by a token"), renewed("t", "renewed by its login"),
        described("t", "seen by its login"), expired("t", "expired by its login"),
        by_token("w", "a login with another's key", hmac=b"not the key"),
        LogIn("nosuch", "w", SHA_256, "key", by_token=True, note="a login by no token"),
        LogIn("{token}", "w", SHA_256, "{hmac}", note="a login without tokenauth"),
        by_token("s", "a login by SCRAM-SHA-512"),
        expired("other", "expired by another"), expired("", "expired without a login"),
        expired("renewer", "expired later by the renewer", 2 * HOUR_MS),
        expired("owner", "expired later by the owner"),
        expired("owner", "expired, one that is not there", hmac=b"abc"),
        expired("owner", "expired", -1), SETTLE,
        described("owner", "seen afterwards"), renewed("owner", "renewed afterwards"),
        expired("owner", "expired again", -1), by_token("u", "a login afterwards"),
        asked("t", "a login of before"),
    ),
    story(
        "delegation tokens for others",
        *(user(name) for name in ("owner", "ward", "other")),
        for_owner("owner", "ward", "without the right"),
        *given("owner", allow("create_tokens", user="User:{user}.ward")),
        for_owner("owner", "ward", "with the right", as_=""), SETTLE,
        for_owner("owner", "other", "for a third"),
        for_owner("owner", "owner", "for itself, by name"),
        created("owner", "for a group", owner_principal_type="Group", owner_principal_name="g"),
        created("owner", "for a nameless user", owner_principal_type="User",
                owner_principal_name=""),
        Ask(CREATE, {"renewers": [principal("g", "Group")], "max_lifetime_ms": HOUR_MS},
            on="owner", note="renewed by a group"),
        *(described(name, f"seen by {name}", "ward") for name in ("owner", "ward", "other")),
        *(described("ward", f"v{version}", "ward", version=version) for version in (1, 2)),
        renewed("owner", "renewed by the requester"), renewed("ward", "renewed by the owner"),
        renewed("other", "renewed by another"),
        by_token("t", "a login by it"), asked("t"),
        expired("other", "expired by another", -1),
        expired("owner", "expired by the requester", -1), SETTLE,
        described("ward", "seen afterwards", "ward"),
    ),
    story(
        "lifetimes of delegation tokens",
        user("owner"),
        *(
            Ask(CREATE, {"max_lifetime_ms": lifetime_ms}, on="owner", note=f"of {lifetime_ms} ms",
                save={"token": "token_id", "hmac": "hmac"})
            for lifetime_ms in (-1, 0, -5, 10**15, 1_500)
        ),
        SETTLE,
        by_token("t", "a login by the last one"), asked("t"), Sleep(1_800),
        asked("t", "after its end"), by_token("u", "a login after its end"),
        renewed("owner", "renewed after its end"), expired("owner", "expired after its end", -1),
        Connect(1, "v"), renewed("v", "without a login"),
    ),
)  # fmt: skip
