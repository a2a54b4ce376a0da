"""A conformance run: every case and conversation is asked, several at a time.

Owns: the order, the workers, the limits in time, what is not tried and why.  Never: judges a value
(comparing.py), makes words, reads a file of the user.

A worker has its own connections, and its own topic on the cluster.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

import gevent
import gevent.pool
from msgspec import Struct

from kcluster.conform import recorded
from kcluster.conform.case import Ask, Await, Case, Conversation, Step
from kcluster.conform.cases import families
from kcluster.conform.cleaning import sweep
from kcluster.conform.cluster import AskedCluster, ClusterFacts, NotConformable, facts_of
from kcluster.conform.comparing import unequal_values
from kcluster.conform.conversations import conversations
from kcluster.conform.filling import CaseError, Untried
from kcluster.conform.findings import Deviation, Result
from kcluster.conform.needs import reason_of, unmet
from kcluster.conform.projection import Projection
from kcluster.conform.recorded import Recordings
from kcluster.conform.references import Reference
from kcluster.conform.rights import of_own_roles
from kcluster.conform.running import CaseRunner
from kcluster.conform.users import NO_USERS, RunUsers
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.proxy.upstream import Upstream, UpstreamError

PREFIX: Final = "kcluster-conform-"
CONVERSATIONS: Final = "conversations"
"""The name of the recorded file of conversations."""
WORKERS: Final = 8
PATIENT_WORKERS: Final = 3
MANY: Final = 300
"""So many cases without Kafka's answer are not a matter of patience."""
TASKS_PER_WORKER: Final = 20
"""With fewer tasks, fewer workers are worth their topic."""
PATIENCE: Final = 6
"""The workers that ask again what did not answer as Kafka does, and how patient they are."""
CASE_LIMIT_S: Final = 60
CONVERSATION_LIMIT_S: Final = 180
"""How long one may take; a few wait for timeouts of Kafka's."""
CLEAN_UP_LIMIT_S: Final = 90
STEP_RETRIES: Final = 150
"""How often a step is repeated whose answer is not the one that it waits for: 15 s."""
TRIES: Final = 3
"""How often a case is asked again until it answers as Kafka does, or twice in the same way."""
_REFUSED: Final = "AUTHORIZATION_FAILED"
_NO_OPERATIONS: Final = "it stops brokers"
_OWN_SETTINGS: Final = "it needs logins with the settings of the recorded cluster"
_SHOWN_BY: Final = {
    "group": ((ApiKey.DESCRIBE_GROUPS, -1), (ApiKey.OFFSET_FETCH, 9)),
    "transaction": ((ApiKey.DESCRIBE_TRANSACTIONS, -1),),
}
"""The parts of the state, and the API and version that show each; -1: the newest."""


_SHOWN_AT: Final = (
    ("state.group.described", ApiKey.DESCRIBE_GROUPS),
    ("state.group.offsets", ApiKey.OFFSET_FETCH),
    ("state.transaction", ApiKey.DESCRIBE_TRANSACTIONS),
)
"""The paths at which a difference is of the API that shows the state, not of the case's own."""


class ConformTask(Struct, frozen=True):
    """One case or conversation.  `expected`: Kafka's outcomes, by version."""

    name: str
    what: Case | Conversation
    expected: Mapping[int, object]

    @property
    def apis(self) -> frozenset[ApiKey]:
        """The APIs that it is about."""
        if isinstance(self.what, Case):
            return frozenset((self.what.api,))
        return frozenset(step.api for step in self.what.steps if isinstance(step, Ask))


def tasks_of(
    reference: Reference,
    only: frozenset[ApiKey] = frozenset(),
    *,
    every_version: bool = False,
    without: tuple[str, ...] = (),
) -> list[ConformTask]:
    """What is asked, conversations first because they wait most.  Without `every_version`: the
    first and the last version of each range with equal answers.  `without`: globs of names."""
    recordings = Recordings()
    outcomes = recordings.load(CONVERSATIONS, reference)
    found = [
        ConformTask(f"conversation: {name}", one, outcomes[name])
        for name, one in conversations().items()
        if name in outcomes
    ]
    for family, cases in families(reference).items():
        outcomes = recordings.load(family, reference)
        for case in cases:
            served = case.each_version(reference)
            known = outcomes.get(case.name, {})
            by_version = {version: known[version] for version in served if version in known}
            wanted = by_version if every_version else _telling(by_version)
            if wanted:
                found.append(ConformTask(f"{family}: {case.name}", case, wanted))
    return [
        task
        for task in found
        if (not only or task.apis & only)
        and not any(fnmatchcase(task.name, glob) for glob in without)
    ]


def _telling(by_version: Mapping[int, object]) -> dict[int, object]:
    """The first and the last version of each range with equal outcomes."""
    ordered = sorted(by_version)
    outcomes = [by_version[version] for version in ordered]
    return {
        version: outcomes[at]
        for at, version in enumerate(ordered)
        if at in (0, len(ordered) - 1) or not outcomes[at - 1] == outcomes[at] == outcomes[at + 1]
    }


class ConformSession:
    """A run against one cluster.  `done` is called after each task, in the greenlet of a worker."""

    def __init__(
        self,
        upstream: Upstream,
        facts: ClusterFacts,
        reference: Reference,
        run_id: str,
        done: Callable[[Result], None],
        users: RunUsers = NO_USERS,
    ) -> None:
        self.prefix = f"{PREFIX}{run_id}"
        self._upstream = upstream
        self._facts = facts
        self._reference = reference
        self._done = done
        self._users = users
        self._unmet = unmet(facts)
        self._hidden = frozenset(
            part
            for part, needed in _SHOWN_BY.items()
            if any(self._is_older(*one) for one in needed)
        )
        hosts = frozenset(host for host, _ in facts.brokers.values())
        self._projection = Projection(hosts, len(facts.brokers) == 3)
        self._queue: deque[ConformTask] = deque()
        self._doubtful: list[ConformTask] = []
        self._first: int | None = None

    def run(self, tasks: Iterable[ConformTask]) -> None:
        """Ask everything; NotConformable if the cluster stops answering."""
        self._find_controller()
        self._queue.extend(tasks)
        self._pass(WORKERS, 1)
        self._queue.extend(self._doubtful)
        self._doubtful.clear()
        self._pass(PATIENT_WORKERS if len(self._queue) < MANY else WORKERS, PATIENCE)

    def _find_controller(self) -> None:
        """Where only the controller creates topics, it is broker 1 of the cases; a broker of Kafka
        passes requests on to it."""
        runner = self._runner_without_stage()
        topic = {"name": f"{self.prefix}-probe", "num_partitions": 1, "replication_factor": 1}
        body = {"topics": [topic], "timeout_ms": 10_000, "validate_only": True}
        try:
            answer = runner.message(m.CreateTopicsResponse, body, 1, runner.values())
        except CaseError as problem:
            raise NotConformable(f"no case can be asked: {problem}") from None
        finally:
            runner.close()
        if any(one.error_code == ErrorCode.NOT_CONTROLLER for one in answer.topics):
            self._first = self._facts.controller

    def _pass(self, count: int, patience: int) -> None:
        """Ask what is in the queue.  What is not as expected in the first pass, with no patience,
        is asked again: a busy cluster shows states that pass."""
        count = min(count, len(self._queue) // TASKS_PER_WORKER + 1)
        workers = gevent.pool.Pool(count)
        greenlets = [workers.spawn(self._work, number, patience) for number in range(count)]
        try:
            gevent.joinall(greenlets, raise_error=True)
        finally:
            workers.kill()

    def clean_up(self) -> list[str]:
        """Delete the topics, groups and users of this run; the names of those that are left."""
        runner = self._runner_without_stage()
        try:
            with gevent.Timeout(CLEAN_UP_LIMIT_S):
                return sweep(runner, self.prefix, has_users=bool(self._users.mechanism))
        except gevent.Timeout:
            return [f"{self.prefix}*: not deleted within {CLEAN_UP_LIMIT_S} s"]
        finally:
            runner.close()

    # ------------------------------------------------------------------------------- working

    def _work(self, number: int, patience: int) -> None:
        runners: dict[bool, CaseRunner] = {}
        try:
            self._work_with(runners, number, patience)
        finally:
            for runner in runners.values():
                runner.close()

    def _work_with(self, runners: dict[bool, CaseRunner], number: int, patience: int) -> None:
        while self._queue:
            task = self._queue.popleft()
            if reasons := self._why_not(task):
                self._done(_untried(task, reasons))
                continue
            is_case = isinstance(task.what, Case)  # conversations write to {topic}, too
            if is_case not in runners:
                name = f"{number}-{patience}-{'cases' if is_case else 'conversations'}"
                runners[is_case] = self._runner(name)
                runners[is_case].patience = patience
            result = self._asked(runners[is_case], task)
            if patience == 1 and (result.deviations or result.reasons):
                self._doubtful.append(task)
            else:
                self._done(result)

    def _runner(self, name: str) -> CaseRunner:
        try:
            with gevent.Timeout(CASE_LIMIT_S):
                return self._new_runner(f"{self.prefix}-{name}", has_stage=True)
        except gevent.Timeout:
            text = f"a topic with three partitions was not usable within {CASE_LIMIT_S} s"
            raise NotConformable(text) from None
        except CaseError as problem:
            raise NotConformable(f"no case can be asked: {problem}") from None

    def _runner_without_stage(self) -> CaseRunner:
        return self._new_runner(self.prefix, has_stage=False)

    def _new_runner(self, tag: str, *, has_stage: bool) -> CaseRunner:
        return CaseRunner(
            AskedCluster(self._upstream, self._facts, self._first),
            tag,
            self._reference,
            prefix=self.prefix,
            retries=STEP_RETRIES,
            hidden=self._hidden,
            has_stage=has_stage,
            users=self._users,
        )

    def _asked(self, runner: CaseRunner, task: ConformTask) -> Result:
        """Ask a task in its versions, and compare."""
        pairs: dict[int, tuple[object, object]] = {}
        reasons: dict[str, int] = {}
        for version, expected in task.expected.items():
            if reason := self._why_not_in(task, version):
                reasons[reason] = reasons.get(reason, 0) + 1
                continue
            wanted = self._expected(of_own_roles(expected))
            try:
                once = partial(self._once, runner, task, version)
                answer = once() if runner.patience == 1 else self._repeated(once, wanted)
            except Untried as problem:
                reason = str(problem)
            except CaseError as problem:
                reason = f"a step before it failed: {_cause(problem)}"
                self._check_alive(task)
            else:
                reason = _refused(wanted, answer)
            if reason:
                reasons[reason] = reasons.get(reason, 0) + 1
            else:
                pairs[version] = (wanted, answer)
        deviations = tuple(self._deviations(task, pairs))
        # Rows with names come in the order of a hash of the names, which are others in each run.
        different = sum(
            bool(unequal_values({0: (_own_part(one), _own_part(other))}))
            for one, other in pairs.values()
        )
        is_case = isinstance(task.what, Case)
        api = _api_of(task) if is_case or not deviations else deviations[0].api
        return Result(
            task.name,
            api,
            same=len(pairs) - different,
            different=different,
            untried=sum(reasons.values()),
            deviations=deviations,
            reasons=tuple(reasons),
        )

    def _once(self, runner: CaseRunner, task: ConformTask, version: int) -> object:
        """One outcome; CaseError if it takes too long."""
        is_case = isinstance(task.what, Case)
        limit_s = CASE_LIMIT_S if is_case else CONVERSATION_LIMIT_S
        try:
            with gevent.Timeout(limit_s):
                if isinstance(task.what, Case):
                    answer = runner.run(task.what, version)
                else:
                    answer = runner.converse(task.what)
        except gevent.Timeout:
            for broker in runner.system.addresses:
                runner.system.close_all(broker)
            raise CaseError(f"it did not end within {limit_s} s") from None
        finally:
            _close_named(runner, task)
        return self._projection.of(recorded.as_json(answer))

    def _repeated(self, ask: Callable[[], object], wanted: object) -> object:
        """What `ask` returns as soon as it is `wanted`, or comes twice; else the last."""
        seen = [wanted]
        while len(seen) <= TRIES:
            answer = ask()
            if answer in seen:
                return answer
            seen.append(answer)
        return seen[-1]

    def _expected(self, outcome: object) -> object:
        """Kafka's outcome, as far as it is compared here."""
        found = self._projection.of(outcome)
        if self._hidden and isinstance(found, dict) and isinstance(found.get("state"), dict):
            state = {n: one for n, one in found["state"].items() if n not in self._hidden}
            found = {name: one for name, one in found.items() if name != "state"}
            if state:
                found["state"] = state
        return found

    def _check_alive(self, task: ConformTask) -> None:
        try:
            facts_of(self._upstream)
        except (NotConformable, UpstreamError) as problem:
            text = f"the cluster does not answer any more, after {task.name}: {problem}"
            raise NotConformable(text) from None

    # ----------------------------------------------------------------------------- not tried

    def _why_not(self, task: ConformTask) -> list[str]:
        """Why a task is not tried in any version."""
        if isinstance(task.what, Conversation) and task.what.needs_operations:
            return [_NO_OPERATIONS]
        if reason := self._why_no_users(task.what):
            return [reason]
        if reason := reason_of(task.name, self._unmet):
            return [reason]
        missing = (self._lacks(step, is_shown=True) for step in _shown_steps(task.what))
        return list(dict.fromkeys(reason for reason in missing if reason))[:1]

    def _why_no_users(self, what: Case | Conversation) -> str:
        """Why the users that a task needs are not there, "" if it needs none."""
        if isinstance(what, Conversation):
            return (self._users.reason or _OWN_SETTINGS) if what.is_secured else ""
        return self._users.reason if what.by_each_role or what.rights is not None else ""

    def _why_not_in(self, task: ConformTask, version: int) -> str:
        if not isinstance(task.what, Case):
            return ""
        low, high = self._facts.versions.get(task.what.api, (0, -1))
        name = APIS[task.what.api].name
        if high < 0:
            return f"the cluster does not list {name}"
        # Cases of unlisted versions are about what is answered to them.
        low_of_kafka, high_of_kafka = self._reference.served(task.what.api)
        if low_of_kafka <= version <= high_of_kafka and not low <= version <= high:
            return f"the cluster lists {name} v{low}-{high} only"
        return ""

    def _lacks(self, step: Step, *, is_shown: bool) -> str:
        if not isinstance(step, Ask):
            return ""
        name = APIS[step.api].name
        if step.api not in self._facts.versions:
            return f"the cluster does not list {name}"
        if is_shown and self._is_older(step.api, step.version):
            wanted = step.version if step.version >= 0 else self._reference.newest(step.api)
            return f"it shows what {name} v{wanted} answers, which the cluster does not list"
        return ""

    def _is_older(self, api: ApiKey, version: int) -> bool:
        """Whether the cluster does not list a version; -1: the reference's newest."""
        wanted = version if version >= 0 else self._reference.newest(api)
        low, high = self._facts.versions.get(api, (0, -1))
        return not low <= wanted <= high

    # ------------------------------------------------------------------------------ comparing

    def _deviations(
        self, task: ConformTask, pairs: Mapping[int, tuple[object, object]]
    ) -> Iterator[Deviation]:
        if isinstance(task.what, Case):
            name = APIS[task.what.api].name
            for versions, path, kafka, ours in unequal_values(pairs):
                shown_by = next((api for start, api in _SHOWN_AT if path.startswith(start)), None)
                if shown_by is None:
                    yield Deviation(task.name, name, versions, path, kafka, ours)
                else:
                    newest = str(self._reference.newest(shown_by))
                    api = APIS[shown_by].name
                    yield Deviation(task.name, api, newest, path, kafka, ours)
            return
        for one, other in pairs.values():
            yield from self._first_deviation(task, one, other)

    def _first_deviation(
        self, task: ConformTask, one: object, other: object
    ) -> Iterator[Deviation]:
        """Those of the first step that differs; what comes later may follow from it."""
        assert isinstance(task.what, Conversation)
        asked = _recorded_steps(task.what)
        assert isinstance(one, list)
        assert isinstance(other, list)
        for step, kafka, ours in zip(asked, one, other, strict=True):
            if kafka != ours:
                wanted = step.version if step.version >= 0 else self._reference.newest(step.api)
                for _, path, a, b in unequal_values({0: (kafka, ours)}):
                    inner = path.partition(".")[2] if "." in path else path
                    shown = f"{step.note}: {inner}" if step.note and inner else path
                    name = APIS[step.api].name
                    yield Deviation(task.name, name, str(wanted), shown, a, b)
                return


def _own_part(outcome: object) -> object:
    """An outcome without what other APIs than the case's own show of the state."""
    if not isinstance(outcome, dict) or not isinstance(outcome.get("state"), dict):
        return outcome
    state = {name: one for name, one in outcome["state"].items() if name not in _SHOWN_BY}
    return {**outcome, "state": state}


def _untried(task: ConformTask, reasons: list[str]) -> Result:
    return Result(
        task.name, _api_of(task), 0, 0, untried=len(task.expected), reasons=tuple(reasons)
    )


def _api_of(task: ConformTask) -> str:
    if isinstance(task.what, Case):
        return APIS[task.what.api].name
    asked = (APIS[step.api].name for step in task.what.steps if isinstance(step, Ask))
    return next(asked, APIS[ApiKey.SASL_AUTHENTICATE].name)


def _shown_steps(what: Case | Conversation) -> tuple[Step, ...]:
    """The steps whose answers are part of the outcome."""
    if isinstance(what, Case):
        return what.after
    return tuple(_recorded_steps(what))


def _recorded_steps(conversation: Conversation) -> list[Ask]:
    """The request of each response in the outcome of a conversation."""
    found: list[Ask] = []
    pending: dict[tuple[str, int | str], Ask] = {}
    for step in conversation.steps:
        if isinstance(step, Await):
            sent = pending[step.on, step.to]
            fields = {name: getattr(sent, name) for name in sent.__struct_fields__}
            found.append(Ask(**{**fields, "note": step.note}))
        elif isinstance(step, Ask):
            if step.later:
                pending[step.on, step.to] = step
            if not step.only_waits:
                found.append(step)
    return found


def _refused(wanted: object, answer: object) -> str:
    """Why an answer says only that this client has no rights."""
    if _REFUSED in repr(answer) and _REFUSED not in repr(wanted):
        return "this client may not: the answer is an AUTHORIZATION_FAILED"
    return ""


def _cause(problem: CaseError) -> str:
    """A step's problem, without the step's fields."""
    text = str(problem)
    return text if len(text) < 160 else f"{text[:120]}…{text[-36:]}"


def _close_named(runner: CaseRunner, task: ConformTask) -> None:
    """Close the connections that a task opened, so that none of them has a pending answer."""
    names = {"case", ""} | {getattr(step, "on", "") for step in _steps(task.what)}
    for broker in runner.system.addresses:
        for name in sorted(names):
            runner.system.close(name, broker)
    runner.forget_pending()


def _steps(what: Case | Conversation) -> tuple[Step, ...]:
    return (*what.before, *what.after) if isinstance(what, Case) else what.steps
