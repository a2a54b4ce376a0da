"""Runs cases and conversations on one system, and returns the responses as plain data.

Owns: steps, placeholders and names of each run, checks of connections.  Never: compares
(differences.py), knows the stage (probes.py).
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
    Await,
    Case,
    Close,
    Connect,
    Conversation,
    Login,
    Operate,
    Send,
    Step,
    Wait,
)
from compare.filling import CaseError, Values, request_of
from compare.logins import log_in
from compare.plain import plain
from compare.references import Reference
from compare.rights import NOBODY, ROLES, create_acls, delete_acls
from compare.secured import SASL
from compare.systems import BROKERS, CLOSED, SILENT, System
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import decode_response_frame, encode_request_frame

ANSWER_LIMIT_MS: Final = 6_000
SILENCE_MS: Final = 250
"""How long a connection must stay silent where no answer is expected."""
RETRIES: Final = 400
RETRY_AFTER_MS: Final = 100
NOT_YET: Final = (
    "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS",
    "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE",
)  # fmt: skip

_LENGTH: Final = Layout(">i")
_PATH: Final = re.compile(r"(\w+)|\[(\d+)\]")


class Runner:
    """Runs cases and conversations on one system.  `tag`: the prefix of all names, new for each
    run.  `reference`: the release that the system is, or is compared with."""

    def __init__(self, system: System, tag: str, reference: Reference) -> None:
        self.system = system
        self.tag = tag
        self.reference = reference
        self._runs = 0
        self._correlation_id = 0
        self._pending: dict[tuple[str, int], Ask] = {}
        ports = {f"port_{id_}": port for id_, (_, port) in system.addresses.items()}
        self.stage: dict[str, Any] = {
            "now": system.now_ms(),
            "tag": tag,
            "topic": f"{tag}.topic",
            "subscription": subscription_to(f"{tag}.topic"),
            "missing": f"{tag}.missing",
            "missing_id": b"\x01no such topic\xff\xfe",
            "metadata_version": reference.release.metadata_version,
            **ports,
            **{f"controller_port_{id_}": port for id_, port in system.controller_ports.items()},
        }
        sasl = {id_: one[SASL][1] for id_, one in system.endpoints.items() if SASL in one}
        self.stage |= {f"sasl_port_{id_}": port for id_, port in sasl.items()}
        self._logged_in: set[tuple[str, int]] = set()
        """The connections of roles, by name and broker."""
        self._ended: dict[tuple[str, int], bool] = {}
        """Whether each connection that a step opened has ended.  It is not opened again, because
        that would be by another listener."""
        probes.prepare_stage(self)
        if sasl:
            create_acls(self, ROLES, Values(self.stage))

    # --------------------------------------------------------------------------- cases

    def run(self, case: Case, version: int) -> Any:
        """Run one version of a case; its responses, and the state that it leaves."""
        body = case.body(version) if callable(case.body) else case.body
        values = self.begin(case, body)
        for step in case.before:
            self._take_before(step, values, case)
        to = self.broker_of(case.to, values)
        request = request_of(APIS[case.api].name, body, values)
        out: dict[str, Any]
        if case.by_each_role:
            out = self._ask_each_role(case, version, request, to, values)
        else:
            on = "case" if case.rights is None else self._new_user(case, to, values)
            out = {"answer": self._exchange(case, version, request, to, values, on)}
        for number, step in enumerate(case.after):
            received = self.take(step, values, case.mask)
            if received is not None:
                out[f"after {number}"] = received
        state = probes.state_after(self, values, case.mask)
        if state:
            out["state"] = state
        probes.clean_up(self, values)
        if case.rights is not None:
            delete_acls(self, values.known["user"], values)
        return out

    def _new_user(self, case: Case, to: int, values: Values) -> str:
        """Give {user} the rights of a case, and log in; the name of the connection."""
        create_acls(self, {"{user}": case.rights or ()}, values)
        log_in(self, Login("{user}", "user"), to, values)
        return "user"

    def _ask_each_role(
        self, case: Case, version: int, request: Any, to: int, values: Values
    ) -> dict[str, Any]:
        """The answer to the role without rights, then each other answer by its roles."""
        by_text: dict[str, tuple[Any, list[str]]] = {}
        for role in ROLES:
            if (role, to) not in self._logged_in:
                log_in(self, Login(role, role), to, values)
                self._logged_in.add((role, to))
            answer = self._exchange(case, version, request, to, values, role)
            by_text.setdefault(repr(answer), (answer, []))[1].append(role)
        return {
            "answer" if NOBODY in roles else ", ".join(roles): answer
            for answer, roles in by_text.values()
        }

    def begin(self, *mentions: Any) -> Values:
        """The values of a new run; creates the topics and groups that `mentions` use."""
        self._runs += 1
        start = f"{self.tag}.{self._runs}"
        values = Values(self.stage)
        text = repr(mentions)
        if any(isinstance(one, Case) and one.rights is not None for one in mentions):
            values.known["user"] = f"{start}.user"
        for name in ("fresh", "new", "new2", "group", "group2", "txn", "user"):
            if f"{{{name}}}" in text or (name == "fresh" and "{fresh_id}" in text):
                values.known[name] = f"{start}.{name}"
        if "group" not in values.known and COORDINATOR in text:
            values.known["group"] = f"{start}.group"
        probes.make_fresh(self, values)
        if "group" in values.known:
            values.known["coordinator"] = probes.coordinator_of(self, values.known["group"])
        if "txn" in values.known:
            coordinator = probes.transaction_coordinator_of(self, values.known["txn"])
            values.known["transactions"] = coordinator
            values.known["elsewhere"] = next(id_ for id_ in BROKERS if id_ != coordinator)
        return values

    def _take_before(self, step: Step, values: Values, case: Case) -> None:
        received = self.take(step, values)
        if received is None or (isinstance(step, Ask) and step.may_fail):
            return
        if not isinstance(received, dict) or "'error_code'" in repr(received):
            raise CaseError(f"{case.name}: {step} got {received}")

    def _exchange(
        self, case: Case, version: int, request: Any, to: int, values: Values, on: str
    ) -> Any:
        """Send the case's request, and check that the connection still works afterwards."""
        frame = self.frame(case.api, version, case.client_id, request)
        if case.bend is not None:
            bent = case.bend(frame[4:])
            frame = _LENGTH.pack(len(bent)) + bent
        limit_ms = ANSWER_LIMIT_MS if case.answered else SILENCE_MS
        self.system.send(on, to, frame)
        received = self.system.receive(on, to, limit_ms)
        answer = self._plain_response(case.api, version, received, values, case.mask)
        if received == CLOSED or (received == SILENT and case.answered):
            self._close(on, to)
            return answer
        if case.by_each_role:
            return answer  # the next case is asked on the same connection
        check = self.frame(ApiKey.API_VERSIONS, 0, None, None)
        self.system.send(on, to, check)
        received = self.system.receive(on, to, ANSWER_LIMIT_MS)
        if isinstance(received, str):
            self._close(on, to)
            return {"first": answer, "then": received}
        return answer

    def _close(self, on: str, to: int) -> None:
        self.system.close(on, to)
        self._logged_in.discard((on, to))

    # --------------------------------------------------------------------- conversations

    def converse(self, conversation: Conversation) -> list[Any]:
        """Run a conversation; the response of each step."""
        values = self.begin(conversation.steps)
        responses: list[Any] = []
        for step in conversation.steps:
            received = self.take(step, values, conversation.mask)
            if isinstance(step, Await | Send | Login) or (
                isinstance(step, Ask) and not step.only_waits
            ):
                responses.append({step.note or "asked": received})
        probes.clean_up(self, values)
        return responses

    def take(self, step: Step, values: Values, masks: Mapping[str, str] = {}) -> Any:
        """Take one step; its response as plain data, None if it waits for none."""
        match step:
            case Ask():
                return self.ask(step, values, masks)
            case Await():
                return self._await(step, values, masks)
            case Wait():
                self.system.sleep_ms(step.duration_ms)
            case Operate():
                broker = self.broker_of(step.broker, values)
                self.system.operate(step.verb, broker)
                if step.verb == "start":
                    self.system.close_all(broker)
            case Close():
                to = self.broker_of(step.to, values)
                self.system.close(step.on, to)
                self._ended.pop((step.on, to), None)
            case Connect():
                self.connect(step.on, self.broker_of(step.to, values))
            case Send():
                frame = _LENGTH.pack(len(step.data)) + step.data
                received = self.exchange(step.on, self.broker_of(step.to, values), frame)
                return received if isinstance(received, str) else f"{len(received)} bytes"
            case Login():
                return log_in(self, step, self.broker_of(step.to, values), values, masks)
        return None

    # -------------------------------------------------------------------------- sending

    def ask(self, step: Ask, values: Values, masks: Mapping[str, str] = {}) -> Any:
        """Send a step's request, with its retries; the response as plain data."""
        to = self.broker_of(step.to, values)
        version = self.reference.newest(step.api) if step.version < 0 else step.version
        for _ in range(RETRIES):
            request = request_of(APIS[step.api].name, step.body, values)
            frame = self.frame(step.api, version, step.client_id, request)
            if step.later:
                self.system.send(step.on, to, frame)
                self._pending[step.on, to] = step
                return None
            received = self.exchange(step.on, to, frame)
            response = self._plain_response(step.api, version, received, values, masks, step.save)
            text = repr(response)
            if step.until in text and not any(name in text for name in step.retry):
                break
            self.system.sleep_ms(RETRY_AFTER_MS)
        return response

    def _await(self, step: Await, values: Values, masks: Mapping[str, str]) -> Any:
        to = self.broker_of(step.to, values)
        sent = self._pending.pop((step.on, to))
        version = self.reference.newest(sent.api) if sent.version < 0 else sent.version
        received = self.system.receive(step.on, to, 3 * ANSWER_LIMIT_MS)
        return self._plain_response(sent.api, version, received, values, masks, step.save)

    def connect(self, on: str, to: int) -> None:
        """Open a connection to the listener with logins."""
        self.system.connect(on, to, SASL)
        self._ended[on, to] = False

    def exchange(self, on: str, to: int, frame: bytes) -> bytes | str:
        """Send a frame, and receive the next one."""
        if self._ended.get((on, to)):
            return CLOSED
        self.system.send(on, to, frame)
        received = self.system.receive(on, to, ANSWER_LIMIT_MS)
        if received == CLOSED and (on, to) in self._ended:
            self._ended[on, to] = True
        return received

    def frame(self, api: ApiKey, version: int, client_id: str | None, request: Any) -> bytes:
        """The bytes of a request."""
        self._correlation_id += 1
        if request is None:
            request = request_of(APIS[api].name, {}, Values(self.stage))
        buffers = encode_request_frame(api, version, self._correlation_id, client_id, request)
        return b"".join(buffers)

    def message(self, api: ApiKey, body: Mapping[str, Any], to: int, values: Values) -> Any:
        """Send a request in its newest version, outside of any case; the decoded response."""
        version = self.reference.newest(api)
        request = request_of(APIS[api].name, body, values)
        self.system.send("stage", to, self.frame(api, version, "stage", request))
        received = self.system.receive("stage", to, 30_000)
        if isinstance(received, str):
            raise CaseError(f"{api.name} got no response: {received}")
        return decode_response_frame(api, version, memoryview(received))[1]

    def broker_of(self, to: int | str, values: Values) -> int:
        """The id of the broker that a step addresses."""
        if to == NOT_COORDINATOR:
            return next(id_ for id_ in BROKERS if id_ != values.known["coordinator"])
        if to == COORDINATOR:
            return int(values.known["coordinator"])
        filled = values.fill(to)
        assert isinstance(filled, int), to
        return filled

    def _plain_response(
        self,
        api: ApiKey,
        version: int,
        received: bytes | str,
        values: Values,
        masks: Mapping[str, str],
        save: Mapping[str, str] = {},
    ) -> Any:
        """A response as plain data, after its values for `save` are taken."""
        if isinstance(received, str):
            return received
        try:
            _, message = decode_response_frame(api, version, memoryview(received))
        except ProtocolError as problem:
            if api is not ApiKey.API_VERSIONS:
                return f"undecodable: {problem}"
            _, message = decode_response_frame(api, 0, memoryview(received))
        for name, path in save.items():
            values.known[name] = value_at(message, path)
        return plain(APIS[api].name, message, values, masks)


def subscription_to(topic: str) -> bytes:
    """A consumer's subscription of version 0: one topic, no user data."""
    name = topic.encode()
    return b"\0\0\0\0\0\1" + len(name).to_bytes(2) + name + b"\xff\xff\xff\xff"


def value_at(message: Any, path: str) -> Any:
    """The value at a path of a message: `topics[0].topic_id`."""
    for name, index in _PATH.findall(path):
        message = message[int(index)] if index else getattr(message, name)
    return message
