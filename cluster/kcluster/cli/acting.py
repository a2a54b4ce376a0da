"""Actions by hand: a verb sends one to the running cluster, and prints its consequences.

Owns: the request, the words about what was done, the options that such verbs share.  Never: checks
or performs an action (web/api/actions.py), words an event (events/render.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kcluster.cli.click_tools import print_json
from kcluster.cli.errors import CommandError
from kcluster.cli.remote import Query, RefusedByCluster, Remote
from kcluster.cli.state_words import brokers_text, left_alone_lines, seconds_text
from kcluster.json_types import JsonObject
from kcluster.operations.states import StateVerb

PARTITIONS_NAMED: Final = 5
NO_OPTIONS: Final[Mapping[str, str]] = {}
_NOTICES: Final = "the cluster notices"
_IN_SYNC: Final = "all replicas are in sync"


class Wording(NamedTuple):
    """The words about an action on brokers.  `waits_until`: the event that it awaits, such as a
    settled cluster."""

    verb: StateVerb
    done: str
    waits_until: str = ""


WORDINGS: Final = {
    "kill": Wording(StateVerb.KILL, "killed", _NOTICES),
    "stop": Wording(StateVerb.KILL, "asked to shut down"),
    "pause": Wording(StateVerb.PAUSE, "paused", _NOTICES),
    "start": Wording(StateVerb.START, "started", _IN_SYNC),
    "resume": Wording(StateVerb.RESUME, "resumed", _IN_SYNC),
    "restart": Wording(StateVerb.RESTART, "to be restarted"),
    "rolling_restart": Wording(StateVerb.RESTART, "to be restarted, one after the other"),
}
"""The wordings by the action's verb."""


def act(
    action: str | JsonObject,
    name: str | None,
    as_json: bool,
    *,
    wait: bool = True,
    duration: str | None = None,
    resume: bool = False,
    remark: str = "",
    otherwise: str = "",
    options: Mapping[str, str] = NO_OPTIONS,
) -> None:
    """Perform an action of scenario files on the cluster called `name`, and print its consequences:
    each as it happens or, with `as_json`, the whole answer as one object.

    A `dict` is the action of a verb: a problem with it is shown without its path.
    `duration`: undo it after this time.  `resume`: a paused clock goes on.  `remark`: the words
    after the state of each broker.  `otherwise`: the line to print if there was nothing to do;
    {broker} in it stands for the first of the named brokers.  `options`: the option by which each
    key of the action was given.
    """
    remote = Remote(name)
    query: Query = {"wait": "settled" if wait else "no", "for": duration, "resume": resume or None}
    words = {"for": "--for"}
    if isinstance(action, dict):
        verb = _verb_of(action)
        words |= {"*": "", **{f"{verb}.{key}": option for key, option in options.items()}}
    try:
        if as_json:
            print_json(remote.post("actions", action, query, options=words, timeout_s=None))
        else:
            _print_progress(remote, action, query, words, remark, otherwise)
    except RefusedByCluster as refusal:
        left_alone = refusal.problem.get("left_alone")
        wording = WORDINGS.get(_verb_of(action))
        if not left_alone or wording is None:
            raise
        raise CommandError(next(left_alone_lines(wording.verb, left_alone))) from None


def act_on_links(
    verb: str, keys: JsonObject, given: JsonObject, options: Mapping[str, str] = NO_OPTIONS
) -> None:
    """Perform an action on links, with the keys that are set.  `given`: the values of
    `network_options`; `options`: the option by which each key was given."""
    if given["one_way"]:
        keys["one_way"] = True
    action = {verb: {key: value for key, value in keys.items() if value is not None}}
    name, as_json, wait = given["name"], given["as_json"], given["wait"]
    act(action, name, as_json, wait=wait, duration=given["duration"], options=options)


def _verb_of(action: str | JsonObject) -> str:
    return action.partition(":")[0].strip() if isinstance(action, str) else next(iter(action))


def _print_progress(
    remote: Remote,
    action: str | JsonObject,
    query: Query,
    options: dict[str, str],
    remark: str,
    otherwise: str,
) -> None:
    """Print the lines of an answer as they come."""
    early: list[str] = []
    """The lines of events that come before it is known which brokers the action left alone."""
    is_performed = has_changed = False
    with remote.asked("POST", "actions", query, action, options=options) as answer:
        for text in answer.lines():
            part = json.loads(text)
            if "line" in part:
                has_changed = True
                early.append(part["line"])
            elif "performed" in part:
                is_performed = True
                early = [*left_alone_of(part["performed"]), *early]
                early += done_lines(part["performed"], remote.name)
            elif "problem" in part:
                print_now(early)
                raise RefusedByCluster(part["problem"], options, answer.version_hint)
            else:
                end = part["answer"]
                print_now([*early, *end_lines(end, remark)])
                if otherwise and not (has_changed or end["is_clock_paused"]):
                    print(otherwise.format(broker=(*end["brokers"], "")[0]))
                return
            if is_performed:
                print_now(early)
                early = []
    raise CommandError("the cluster stopped before it answered")


def print_now(lines: list[str]) -> None:
    """Print lines at once, without collecting more."""
    if lines:
        print("\n".join(lines), flush=True)


def left_alone_of(answer: JsonObject) -> Iterator[str]:
    """The brokers for which there was nothing to do, with the reasons."""
    wording = WORDINGS.get(answer["text"])
    if wording is not None:
        yield from left_alone_lines(wording.verb, answer["left_alone"])
        if not answer["brokers"]:
            yield "there is no such broker now"


def done_lines(answer: JsonObject, name: str) -> Iterator[str]:
    """The lines about the performed action, and about the wait that follows."""
    wording, waits_s = WORDINGS.get(answer["text"]), answer["waits_s"]
    if wording is None:
        if waits_s:
            limit = seconds_text(waits_s)
            yield f"{name}: waiting until the cluster has settled (up to {limit})"
        return
    left_alone = [broker["id"] for broker in answer["left_alone"]]
    chosen = [broker for broker in answer["brokers"] if broker not in left_alone]
    if not chosen:
        return
    waiting = ""
    if waits_s and wording.waits_until:
        waiting = f"; waiting until {wording.waits_until}"
        if wording.waits_until == _NOTICES:
            waiting += f" (up to {seconds_text(answer['notice_s'])})"
    yield f"{name}: {brokers_text(chosen)} {wording.done}{waiting}"


def end_lines(answer: JsonObject, remark: str) -> Iterator[str]:
    """The lines about the brokers' states, and hints."""
    if answer["text"] in WORDINGS:
        for broker in answer["states"]:
            yield f"broker {broker['id']} is {broker['state']}{remark}"
    if alone := answer["alone"]:
        named = ", ".join(alone[:PARTITIONS_NAMED])
        if len(alone) > PARTITIONS_NAMED:
            named += f" and {len(alone) - PARTITIONS_NAMED} more"
        have = "has" if len(alone) == 1 else "have"
        yield f"{named} {have} one replica: no broker can take over (replication_factor: 3)"
    if answer["is_clock_paused"]:
        yield "the clock is paused: the rest follows after kcluster clock resume"
