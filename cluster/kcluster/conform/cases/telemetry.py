"""GetTelemetrySubscriptions and PushTelemetry, with and without subscriptions.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import Ask, Case, CaseBody, Sleep, Step, passed_on
from kcluster.conform.cases.alter_configs import ALTER, DELETE, METRICS, Change, body, resource
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.compression import CODEC_NAMES, compress

GET, PUSH = ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY
DRAWN = {"client_instance_id": "drawn at random", "subscription_id": "a checksum with that id"}
LAST = {"terminating": True}


def got(**more: object) -> Ask:
    """Get a subscription as a client without an id; saves {me} and {told}."""
    return Ask(
        GET, {}, save={"me": "client_instance_id", "told": "subscription_id"}, **passed_on(more)
    )


def again(**more: object) -> Ask:
    return Ask(GET, {"client_instance_id": "{me}"}, **passed_on(more))


def push(**fields: object) -> JsonObject:
    return {"client_instance_id": "{me}", "subscription_id": "{told}", "metrics": b"some", **fields}


def pushed(**fields: object) -> Ask:
    return Ask(PUSH, push(**fields))


def subscribed(*changes: Change) -> tuple[Step, ...]:
    return Ask(ALTER, body(resource(METRICS, "{user}", *changes))), Sleep(150)


def gone(*changes: Change) -> tuple[Step, ...]:
    back: list[Change] = [(change[0], None, DELETE) for change in changes]
    return Ask(ALTER, body(resource(METRICS, "{user}", *back))), Sleep(150)


def case(name: str, api: ApiKey, asked: CaseBody, *before: Step, **more: object) -> Case:
    return Case(name, api, asked, before=before, mask=DRAWN, **passed_on(more))


MINE = (("match", "client_id=compare"), ("metrics", "a.b"), ("interval.ms", "60000"))
QUICK = (("match", "client_id=compare"), ("metrics", "a.b"), ("interval.ms", "100"))
OTHERS = (("match", "client_id=nobody"), ("metrics", "a.b"), ("interval.ms", "1000"))
ME = {"client_instance_id": "{me}"}

CASES = (
    case("get without an id", GET, {}),
    case("get with an id that nobody knows", GET, {"client_instance_id": "{missing_id}"}),
    case("get again", GET, ME, got()),
    case("get after a push", GET, ME, got(), pushed()),
    case("get at another broker", GET, ME, got(), to=2),
    case("push", PUSH, push(), got()),
    case("push nothing", PUSH, push(metrics=b""), got()),
    case("push twice", PUSH, push(), got(), pushed()),
    case("push without having asked", PUSH, push(client_instance_id="{missing_id}",
                                                 subscription_id=1)),
    case("push without an id", PUSH, push(client_instance_id=bytes(16), subscription_id=1)),
    case("push with a reserved id", PUSH, push(client_instance_id=bytes(15) + b"\x01",
                                               subscription_id=1)),
    case("push for another subscription", PUSH, push(subscription_id=77), got()),
    case("push after an unknown subscription", PUSH, push(), got(),
         Ask(PUSH, push(subscription_id=77), may_fail=True)),
    case("get after an unknown subscription", GET, ME, got(),
         Ask(PUSH, push(subscription_id=77), may_fail=True)),
    case("push no zstd", PUSH, push(compression_type=4), got()),
    *(
        case(f"push {CODEC_NAMES[codec]}", PUSH,
             push(compression_type=codec, metrics=compress(codec, b"some")), got())
        for codec in (1, 2, 3, 4)
    ),
    case("push after asking again for the subscription", PUSH, push(), got(),
         Ask(PUSH, push(subscription_id=77), may_fail=True), again()),
    case("get thrice", GET, ME, got(),
         Ask(PUSH, push(subscription_id=77), may_fail=True), again()),
    case("push an unknown codec", PUSH, push(compression_type=5), got()),
    case("push codec -1", PUSH, push(compression_type=-1), got()),
    case("get after an unknown codec", GET, ME, got(),
         Ask(PUSH, push(compression_type=9), may_fail=True)),
    case("push a MiB", PUSH, push(metrics=bytes(1 << 20)), got()),
    case("push too much", PUSH, push(metrics=bytes((1 << 20) + 1)), got()),
    case("the last push", PUSH, push(**LAST), got()),
    case("the last push, early", PUSH, push(**LAST), got(), pushed()),
    case("the last push twice", PUSH, push(**LAST), got(), pushed(**LAST)),
    case("a push after the last", PUSH, push(), got(), pushed(**LAST)),
    case("get after the last push", GET, ME, got(), pushed(**LAST)),
    case("push too much and unknown", PUSH, push(metrics=bytes((1 << 20) + 1), subscription_id=7,
                                                 compression_type=9), got()),

    case("subscribed", GET, {}, *subscribed(*MINE), after=gone(*MINE)),
    case("subscribed again", GET, ME, *subscribed(*MINE), got(), after=gone(*MINE)),
    case("subscribed after having asked", GET, ME, got(), *subscribed(*MINE), after=gone(*MINE)),
    case("push what was told before", PUSH, push(), got(), *subscribed(*MINE), after=gone(*MINE)),
    case("push what is subscribed to", PUSH, push(), *subscribed(*MINE), got(), after=gone(*MINE)),
    case("push after an interval", PUSH, push(), *subscribed(*QUICK), got(), pushed(), Sleep(150),
         after=gone(*QUICK)),
    case("get after an interval", GET, ME, *subscribed(*QUICK), got(), Sleep(150),
         after=gone(*QUICK)),
    case("others subscribed", GET, {}, *subscribed(*OTHERS), after=gone(*OTHERS)),
    case("all metrics", GET, {}, *subscribed(("metrics", "*,a.b")), after=gone(("metrics", ""))),
    case("by address", GET, {}, *subscribed(("metrics", "x"), ("match",
         "client_source_address=127\\.0\\..*")), after=gone(("metrics", ""), ("match", ""))),
    case("by part of the client's id", GET, {}, *subscribed(("metrics", "x"), ("match",
         "client_id=comp")), after=gone(("metrics", ""), ("match", ""))),
)  # fmt: skip
