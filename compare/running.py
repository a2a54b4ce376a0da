"""Runs cases and conversations on one system, and returns what was answered as plain data.

Owns: the stage (topics that are there from the start), names that are new in each run, steps, what
is asked afterwards.  Never: compares.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from struct import Struct as Layout
from typing import Any, Final

from compare import probes
from compare.case import (
    COORDINATOR,
    NOT_COORDINATOR,
    Ask,
    Case,
    Close,
    Conversation,
    Deed,
    Hear,
    Pass,
    Step,
    newest,
)
from compare.filling import CaseError, Values, request_of
from compare.plain import plain
from compare.systems import BROKERS, CLOSED, SILENT, System
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import decode_response_frame, encode_request_frame

ANSWER_LIMIT_MS: Final = 6_000
SILENCE_MS: Final = 250
"""How long nothing must come where no answer is due."""
RETRIES: Final = 400
RETRY_AFTER_MS: Final = 100
NOT_YET: Final = (
    "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS",
    "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE",
)  # fmt: skip

_LENGTH: Final = Layout(">i")
_PATH: Final = re.compile(r"(\w+)|\[(\d+)\]")


class Runner:
    """One system, with its stage set.  `tag`: begins every name, new for each run."""

    def __init__(self, system: System, tag: str) -> None:
        self.system = system
        self.tag = tag
        self._runs = 0
        self._correlation_id = 0
        self._pending: dict[tuple[str, int], Ask] = {}
        ports = {f"port_{id_}": port for id_, (_, port) in system.addresses.items()}
        self.stage: dict[str, Any] = {
            "now": system.now_ms(),
            "topic": f"{tag}.topic",
            "subscription": subscription_to(f"{tag}.topic"),
            "missing": f"{tag}.missing",
            "missing_id": b"\x01no such topic\xff\xfe",
            **ports,
        }
        probes.set_stage(self)

    # --------------------------------------------------------------------------- cases

    def run(self, case: Case, version: int) -> Any:
        """What one version of a case is answered, and the state that it leaves."""
        body = case.body(version) if callable(case.body) else case.body
        values = self.begin(case, body)
        for step in case.before:
            self._take_before(step, values, case)
        to = self.broker_of(case.to, values)
        request = request_of(APIS[case.api].name, body, values)
        answer = self._exchange(case, version, request, to, values)
        out: dict[str, Any] = {"answer": answer}
        for number, step in enumerate(case.after):
            heard = self.take(step, values, case.mask)
            if heard is not None:
                out[f"after {number}"] = heard
        state = probes.state_after(self, values, case.mask)
        if state:
            out["state"] = state
        probes.clean_up(self, values)
        return out

    def begin(self, *mentions: Any) -> Values:
        """The values of one more run; makes what `mentions` mention."""
        self._runs += 1
        start = f"{self.tag}.{self._runs}"
        values = Values(self.stage)
        text = repr(mentions)
        for name in ("fresh", "new", "new2", "group", "group2", "user"):
            if f"{{{name}}}" in text or (name == "fresh" and "{fresh_id}" in text):
                values.known[name] = f"{start}.{name}"
        if "group" not in values.known and COORDINATOR in text:
            values.known["group"] = f"{start}.group"
        probes.make_fresh(self, values)
        if "group" in values.known:
            values.known["coordinator"] = probes.coordinator_of(self, values.known["group"])
        return values

    def _take_before(self, step: Step, values: Values, case: Case) -> None:
        heard = self.take(step, values)
        if heard is None or (isinstance(step, Ask) and step.may_fail):
            return
        if not isinstance(heard, dict) or "'error_code'" in repr(heard):
            raise CaseError(f"{case.name}: {step} was answered {heard}")

    def _exchange(self, case: Case, version: int, request: Any, to: int, values: Values) -> Any:
        """The request that a case is about, and whether the connection is good afterwards."""
        frame = self.frame(case.api, version, case.client_id, request)
        if case.bend is not None:
            bent = case.bend(frame[4:])
            frame = _LENGTH.pack(len(bent)) + bent
        limit_ms = ANSWER_LIMIT_MS if case.answered else SILENCE_MS
        self.system.send("case", to, frame)
        heard = self.system.hear("case", to, limit_ms)
        answer = self._told(case.api, version, heard, values, case.mask)
        if heard == CLOSED or (heard == SILENT and case.answered):
            self.system.close("case", to)
            return answer
        check = self.frame(ApiKey.API_VERSIONS, 0, None, None)
        self.system.send("case", to, check)
        heard = self.system.hear("case", to, ANSWER_LIMIT_MS)
        if isinstance(heard, str):
            self.system.close("case", to)
            return {"first": answer, "then": heard}
        return answer

    # --------------------------------------------------------------------- conversations

    def converse(self, conversation: Conversation) -> list[Any]:
        """What each step of a conversation is answered."""
        values = self.begin(conversation.steps)
        told: list[Any] = []
        for step in conversation.steps:
            heard = self.take(step, values, conversation.mask)
            if isinstance(step, (Ask, Hear)):
                told.append({step.note or "asked": heard})
        probes.clean_up(self, values)
        return told

    def take(self, step: Step, values: Values, masks: Mapping[str, str] = {}) -> Any:
        """One step; its answer as plain data, None if none is waited for."""
        match step:
            case Ask():
                return self.ask(step, values, masks)
            case Hear():
                return self._hear(step, values, masks)
            case Pass():
                self.system.pass_ms(step.duration_ms)
            case Deed():
                self.system.deed(step.verb, step.broker)
                if step.verb == "start":
                    self.system.close_all(step.broker)
            case Close():
                self.system.close(step.on, self.broker_of(step.to, values))
        return None

    # --------------------------------------------------------------------------- asking

    def ask(self, step: Ask, values: Values, masks: Mapping[str, str] = {}) -> Any:
        """Ask, again and again if the step says so; plain data."""
        to = self.broker_of(step.to, values)
        version = newest(step.api) if step.version < 0 else step.version
        for _ in range(RETRIES):
            request = request_of(APIS[step.api].name, step.body, values)
            self.system.send(step.on, to, self.frame(step.api, version, step.client_id, request))
            if step.later:
                self._pending[step.on, to] = step
                return None
            heard = self.system.hear(step.on, to, ANSWER_LIMIT_MS)
            told = self._told(step.api, version, heard, values, masks, step.save)
            text = repr(told)
            if step.until in text and not any(name in text for name in step.retry):
                break
            self.system.pass_ms(RETRY_AFTER_MS)
        return told

    def _hear(self, step: Hear, values: Values, masks: Mapping[str, str]) -> Any:
        to = self.broker_of(step.to, values)
        asked = self._pending.pop((step.on, to))
        version = newest(asked.api) if asked.version < 0 else asked.version
        heard = self.system.hear(step.on, to, 3 * ANSWER_LIMIT_MS)
        return self._told(asked.api, version, heard, values, masks, step.save)

    def frame(self, api: ApiKey, version: int, client_id: str | None, request: Any) -> bytes:
        """A request as it goes to the wire."""
        self._correlation_id += 1
        if request is None:
            request = request_of(APIS[api].name, {}, Values(self.stage))
        buffers = encode_request_frame(api, version, self._correlation_id, client_id, request)
        return b"".join(buffers)

    def message(self, api: ApiKey, body: Mapping[str, Any], to: int, values: Values) -> Any:
        """Ask the newest version, outside of any case; the decoded answer."""
        version = newest(api)
        request = request_of(APIS[api].name, body, values)
        self.system.send("stage", to, self.frame(api, version, "stage", request))
        heard = self.system.hear("stage", to, 30_000)
        if isinstance(heard, str):
            raise CaseError(f"{api.name} was answered by {heard}")
        return decode_response_frame(api, version, memoryview(heard))[1]

    def broker_of(self, to: int | str, values: Values) -> int:
        """The id of the broker that a step is for."""
        if to == NOT_COORDINATOR:
            return next(id_ for id_ in BROKERS if id_ != values.known["coordinator"])
        if to == COORDINATOR:
            return int(values.known["coordinator"])
        filled = values.fill(to)
        assert isinstance(filled, int), to
        return filled

    def _told(
        self, api: ApiKey, version: int, heard: bytes | str, values: Values,
        masks: Mapping[str, str], save: Mapping[str, str] = {},
    ) -> Any:  # fmt: skip
        """An answer as plain data; what is to be saved is saved first."""
        if isinstance(heard, str):
            return heard
        try:
            _, message = decode_response_frame(api, version, memoryview(heard))
        except ProtocolError as problem:
            if api is not ApiKey.API_VERSIONS:
                return f"undecodable: {problem}"
            _, message = decode_response_frame(api, 0, memoryview(heard))
        for name, path in save.items():
            values.known[name] = looked_up(message, path)
        return plain(APIS[api].name, message, values, masks)


def subscription_to(topic: str) -> bytes:
    """What a consumer's JoinGroup carries, version 0: one topic, no user data."""
    name = topic.encode()
    return b"\0\0\0\0\0\1" + len(name).to_bytes(2) + name + b"\xff\xff\xff\xff"


def looked_up(message: Any, path: str) -> Any:
    """`topics[0].topic_id` of a message."""
    for name, index in _PATH.findall(path):
        message = message[int(index)] if index else getattr(message, name)
    return message
