"""Runs cases and conversations on one system, and returns the responses as plain data.

Owns: steps, placeholders and names of each run, checks of connections.  Never: compares
(comparing.py), knows the stage (probes.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from struct import Struct as Layout
from typing import Final

from kcluster.conform import probes
from kcluster.conform.case import (
    COORDINATOR,
    NOT_COORDINATOR,
    Ask,
    Await,
    Body,
    Case,
    Connect,
    Conversation,
    Disconnect,
    LogIn,
    Operate,
    SendBytes,
    Sleep,
    Step,
)
from kcluster.conform.filling import CaseError, Untried, Values, request_of
from kcluster.conform.guard import refusal
from kcluster.conform.logins import log_in
from kcluster.conform.plain import plain
from kcluster.conform.probes import Answer
from kcluster.conform.references import Reference
from kcluster.conform.rights import OWN_ROLES, ROLES, by_roles, create_acls, delete_acls
from kcluster.conform.systems import CLOSED, SASL, SILENT, System
from kcluster.conform.users import CONNECTION, NO_USERS, USER, RunUsers, log_in_user, make_users
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.messages import Message

ANSWER_LIMIT_MS: Final = 6_000
SILENCE_MS: Final = 250
"""How long a connection must stay silent where no answer is expected."""
SHORT_SLEEP_MS: Final = 500
RETRIES: Final = 400
RETRY_AFTER_MS: Final = 100
NOT_YET: Final = (
    "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS",
    "UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE",
)  # fmt: skip

_ANSWERED: Final = {f"{one.name}Response": ApiKey(key) for key, one in APIS.items()}
"""The API of each response."""
_LENGTH: Final = Layout(">i")
_PATH: Final = re.compile(r"(\w+)|\[(\d+)\]")


class CaseRunner:
    """Runs cases and conversations on one system.  `tag`: the prefix of all names, new for each
    run.  `reference`: the release that the system is, or is compared with."""

    def __init__(
        self,
        system: System,
        tag: str,
        reference: Reference,
        *,
        prefix: str = "",
        retries: int = RETRIES,
        hidden: frozenset[str] = frozenset(),
        has_stage: bool = True,
        users: RunUsers = NO_USERS,
    ) -> None:
        """`prefix`: only topics, groups and transactional ids with it are changed; "" for a cluster
        of one's own.  `retries`: of a step whose answer is not the one that it waits for.
        `hidden`: parts of the state that the system does not show as the reference does.
        `has_stage`: False if no case is run, so that there is no {topic}.  `users`: of a run on
        somebody's cluster."""
        self.hidden = hidden
        self.patience = 1
        """By how much short waits for a change to be visible are longer than in the cases."""
        self._prefix = prefix
        self._retries = retries
        self._users = users
        self.system = system
        self.tag = tag
        self.reference = reference
        self._runs = 0
        self._correlation_id = 0
        self._pending: dict[tuple[str, int], Ask] = {}
        ports = {f"port_{id_}": port for id_, (_, port) in system.addresses.items()}
        self.stage: JsonObject = {
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
        self._has_roles = bool(sasl)
        """Whether there is a user for each role."""
        self._logged_in: set[tuple[str, int]] = set()
        """The connections of roles, by name and broker."""
        self._ended: dict[tuple[str, int], bool] = {}
        """Whether each connection that a step opened has ended.  It is not opened again, because
        that would be by another listener."""
        if has_stage:
            probes.prepare_stage(self)
        if sasl:
            create_acls(self, ROLES, self.values())

    # --------------------------------------------------------------------------- cases

    def run(self, case: Case, version: int) -> object:
        """Run one version of a case; its responses, and the state that it leaves."""
        body = case.body(version) if callable(case.body) else case.body
        values = self.begin(case, body)
        try:
            return self._run(case, version, body, values)
        finally:
            probes.clean_up(self, values)

    def _run(self, case: Case, version: int, body: Body, values: Values) -> object:
        for step in case.before:
            self._take_before(step, values, case)
        to = self.broker_of(case.to, values)
        request = request_of(APIS[case.api].name, body, values)
        out: JsonObject
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
        if case.rights is not None:
            delete_acls(self, values.known["user"], values)
        return out

    def _new_user(self, case: Case, to: int, values: Values) -> str:
        """Give {user} the rights of a case, and log in; the name of the connection."""
        rights = {USER: case.rights or ()}
        if self._users.mechanism:
            make_users(self, self._users, rights, values)
            log_in_user(self, self._users, USER, CONNECTION, to, values)
        else:
            create_acls(self, rights, values)
            log_in(self, LogIn(USER, CONNECTION), to, values)
        return CONNECTION

    def _ask_each_role(
        self, case: Case, version: int, request: Message | None, to: int, values: Values
    ) -> JsonObject:
        """The answer to the role without rights, then each other answer by its roles."""
        has_users = bool(self._users.mechanism)
        if has_users and not self._has_roles:
            rights = {self._user_of(role): rights for role, rights in OWN_ROLES.items()}
            make_users(self, self._users, rights, values)
            self._has_roles = True
        answers: dict[str, object] = {}
        for role in OWN_ROLES if has_users else ROLES:
            if (role, to) not in self._logged_in:
                if has_users:
                    log_in_user(self, self._users, self._user_of(role), role, to, values)
                else:
                    log_in(self, LogIn(role, role), to, values)
                self._logged_in.add((role, to))
            answers[role] = self._exchange(case, version, request, to, values, role)
        return by_roles(answers)

    def _user_of(self, role: str) -> str:
        """The name of the user of this run who has a role."""
        return f"{self.tag}.{role}"

    def begin(self, *mentions: object) -> Values:
        """The values of a new run; creates the topics and groups that `mentions` use."""
        self._runs += 1
        start = f"{self.tag}.{self._runs}"
        values = self.values()
        if self._prefix:
            values.known["run"] = start
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
            values.known["elsewhere"] = self._another(coordinator)
        return values

    def _take_before(self, step: Step, values: Values, case: Case) -> None:
        received = self.take(step, values)
        if received is None or (isinstance(step, Ask) and step.may_fail):
            return
        if not isinstance(received, dict) or "'error_code'" in repr(received):
            asked = APIS[step.api].name if isinstance(step, Ask) else "a step"
            raise CaseError(f"{asked} got {_errors_in(received)}")

    def _exchange(
        self, case: Case, version: int, request: Message | None, to: int, values: Values, on: str
    ) -> object:
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

    def close(self) -> None:
        """Close all connections."""
        for broker in self.system.addresses:
            self.system.close_all(broker)

    def forget_pending(self) -> None:
        """Forget requests whose answers are not awaited any more."""
        self._pending.clear()
        self._ended.clear()

    def _close(self, on: str, to: int) -> None:
        self.system.close(on, to)
        self._logged_in.discard((on, to))

    # --------------------------------------------------------------------- conversations

    def converse(self, conversation: Conversation) -> list[object]:
        """Run a conversation; the response of each step."""
        values = self.begin(conversation.steps)
        try:
            return self._converse(conversation, values)
        finally:
            probes.clean_up(self, values)

    def _converse(self, conversation: Conversation, values: Values) -> list[object]:
        responses: list[object] = []
        for step in conversation.steps:
            received = self.take(step, values, conversation.mask)
            if isinstance(step, Await | SendBytes | LogIn) or (
                isinstance(step, Ask) and not step.only_waits
            ):
                responses.append({step.note or "asked": received})
        return responses

    def take(self, step: Step, values: Values, masks: Mapping[str, str] = {}) -> object:
        """Take one step; its response as plain data, None if it waits for none."""
        match step:
            case Ask():
                return self.ask(step, values, masks)
            case Await():
                return self._await(step, values, masks)
            case Sleep():
                is_short = step.duration_ms <= SHORT_SLEEP_MS  # others are about timeouts
                self.system.sleep_ms(step.duration_ms * (self.patience if is_short else 1))
            case Operate():
                broker = self.broker_of(step.broker, values)
                self.system.operate(step.verb, broker)
                if step.verb == "start":
                    self.system.close_all(broker)
            case Disconnect():
                to = self.broker_of(step.to, values)
                self.system.close(step.on, to)
                self._ended.pop((step.on, to), None)
            case Connect():
                self.connect(step.on, self.broker_of(step.to, values))
            case SendBytes():
                frame = _LENGTH.pack(len(step.data)) + step.data
                received = self.exchange(step.on, self.broker_of(step.to, values), frame)
                return received if isinstance(received, str) else f"{len(received)} bytes"
            case LogIn():
                return log_in(self, step, self.broker_of(step.to, values), values, masks)
        return None

    # -------------------------------------------------------------------------- sending

    def ask(self, step: Ask, values: Values, masks: Mapping[str, str] = {}) -> object:
        """Send a step's request, with its retries; the response as plain data."""
        to = self.broker_of(step.to, values)
        version = self.newest(step.api) if step.version < 0 else step.version
        self._require_listed(step.api, version)
        for _ in range(self._retries):
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

    def _await(self, step: Await, values: Values, masks: Mapping[str, str]) -> object:
        to = self.broker_of(step.to, values)
        sent = self._pending.pop((step.on, to))
        version = self.newest(sent.api) if sent.version < 0 else sent.version
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

    def frame(
        self, api: ApiKey, version: int, client_id: str | None, request: Message | None
    ) -> bytes:
        """The bytes of a request."""
        self._correlation_id += 1
        if request is None:
            request = request_of(APIS[api].name, {}, self.values())
        has_users = bool(self._users.mechanism)
        reason = refusal(api, request, self._prefix, has_users=has_users) if self._prefix else ""
        if reason:
            raise Untried(f"{APIS[api].name}: {reason}")
        buffers = encode_request_frame(api, version, self._correlation_id, client_id, request)
        return b"".join(buffers)

    def message(
        self, expected: type[Answer], body: Mapping[str, object], to: int, values: Values
    ) -> Answer:
        """Send a request in its newest version, outside of any case; the decoded response."""
        api = _ANSWERED[expected.__name__]
        version = self.newest(api)
        self._require_listed(api, version)
        request = request_of(APIS[api].name, body, values)
        self.system.send("stage", to, self.frame(api, version, "stage", request))
        received = self.system.receive("stage", to, 30_000)
        if isinstance(received, str):
            raise CaseError(f"{APIS[api].name} got no response: {received}")
        try:
            decoded = decode_response_frame(api, version, memoryview(received))[1]
        except ProtocolError as problem:
            raise CaseError(f"{APIS[api].name} got an undecodable response: {problem}") from None
        assert isinstance(decoded, expected)
        return decoded

    def values(self) -> Values:
        """The placeholders of the stage."""
        values = Values(self.stage, self.system.ids)
        addresses = self.system.addresses.items()
        values.port_names = {address: f"{{port_{id_}}}" for id_, address in addresses}
        return values

    def serves(self, api: ApiKey) -> bool:
        """Whether the system's brokers list an API."""
        return self.newest(api) >= 0

    def _require_listed(self, api: ApiKey, version: int) -> None:
        """Untried if the system does not list a version that a step needs."""
        newest = self.system.newest(api)
        if newest < 0:
            raise Untried(f"the cluster does not list {APIS[api].name}")
        if version > newest:
            raise Untried(f"the cluster does not list {APIS[api].name} v{version}")

    def newest(self, api: ApiKey) -> int:
        """The newest version that both the reference and the system serve; negative if none."""
        return min(self.reference.newest(api), self.system.newest(api))

    def broker_of(self, to: int | str, values: Values) -> int:
        """The id of the broker that a step addresses."""
        if to == NOT_COORDINATOR:
            return self._another(values.known["coordinator"])
        if to == COORDINATOR:
            return int(values.known["coordinator"])
        filled = values.fill(to)
        assert isinstance(filled, int), to
        if filled not in self.system.addresses:
            raise Untried("it needs more brokers than the cluster has")
        return filled

    def _another(self, broker: int) -> int:
        """A broker besides this one."""
        for found in self.system.addresses:
            if found != broker:
                return found
        raise Untried("it needs more brokers than the cluster has")

    def _plain_response(
        self,
        api: ApiKey,
        version: int,
        received: bytes | str,
        values: Values,
        masks: Mapping[str, str],
        save: Mapping[str, str] = {},
    ) -> object:
        """A response as plain data, after its values for `save` are taken."""
        if isinstance(received, str):
            return received
        try:
            _, message = decode_response_frame(api, version, memoryview(received))
        except ProtocolError as problem:
            if api is not ApiKey.API_VERSIONS:
                return f"undecodable: {problem}"
            try:  # of a version that is too new
                _, message = decode_response_frame(api, 0, memoryview(received))
            except ProtocolError:
                return f"undecodable: {problem}"
        for name, path in save.items():
            field = path.rpartition(".")[2]
            values.known[name] = values.ids.field_to_case(field, value_at(message, path))
        values.version = version
        return plain(APIS[api].name, message, values, masks)


def subscription_to(topic: str) -> bytes:
    """A consumer's subscription of version 0: one topic, no user data."""
    name = topic.encode()
    return b"\0\0\0\0\0\1" + len(name).to_bytes(2) + name + b"\xff\xff\xff\xff"


def _errors_in(answer: object) -> str:
    """The errors in a plain response, or what came instead of one."""
    names = re.findall(r"'error_code': '(\w+)'", repr(answer))
    return ", ".join(dict.fromkeys(names)) or str(answer)


def value_at(message: object, path: str) -> object:
    """The value at a path of a message: `topics[0].topic_id`."""
    for name, index in _PATH.findall(path):
        if index:
            assert isinstance(message, list), path
            if int(index) >= len(message):
                raise CaseError(f"the answer has no {path}")
            message = message[int(index)]
        else:
            message = getattr(message, name)
    return message
