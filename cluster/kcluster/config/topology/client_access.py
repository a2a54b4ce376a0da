"""How a client comes into the cluster of a topology: the listener, the user, the mechanism.

Owns: the choice, where a client names a user, a listener, both or neither.  Never: logs in, checks
a topology.
Kafka: no counterpart; an administrator tells the users of a cluster.

Without a listener and a user, a client comes by the first PLAINTEXT listener, or as the first user
of the topology.  With a user it comes by the first listener with SASL; of its mechanisms that are
enabled there, the strongest counts, unless it names one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.config.files.problems import unknown
from kcluster.config.kafka.tls import TlsTexts
from kcluster.config.topology.model import Topology
from kcluster.config.topology.sasl import enabled_mechanisms, jaas_passwords
from kcluster.config.topology.specs import ListenerSpec, UserSpec
from kcluster.security.certificate_names import certificate_subject, mapping_rules, principal_name
from kcluster.security.client_access import ClientAccess
from kcluster.security.sasl.mechanisms import OAUTHBEARER, PLAIN, SCRAM_CODES

_STRONGEST_FIRST: Final = (*sorted(SCRAM_CODES, reverse=True), PLAIN)
_NO_USERS: Final = "add users such as security: {users: {alice: alice-secret}}"


class AccessProblem(Struct, frozen=True):
    """The reason why a client cannot come in.  `key`: that of the value at fault, `user` or
    `listener`; empty: the topology is."""

    key: str
    text: str


def find_access(
    topology: Topology,
    user: str | None = None,
    listener: str | None = None,
    mechanism: str | None = None,
) -> ClientAccess | AccessProblem:
    """The access of a client; of a listener that not all brokers have, the first broker that has it
    decides.  `mechanism`: of SASL; None: the strongest one."""
    listeners = _listeners(topology)
    if listener is not None:
        chosen = listeners.get(listener.upper())
        if chosen is None:
            return AccessProblem("listener", unknown("listener", listener, listeners))
    else:
        chosen = _listener_for(user, list(listeners.values()))
    if not chosen.protocol.has_sasl:
        if mechanism is not None:
            text = f"{mechanism} does not apply: the listener {chosen.name} has no SASL"
            return AccessProblem("mechanism", text)
        if user is None:
            return ClientAccess(chosen.name, chosen.protocol)
        if chosen.protocol.has_tls:
            return _by_certificate(topology, chosen, user)
        text = f"{user} cannot log in: the listener {chosen.name} is {chosen.protocol.name}"
        return AccessProblem("user", text)
    return _by_sasl(topology, chosen, user, mechanism)


def access_of(
    topology: Topology, user: str | None = None, listener: str | None = None
) -> ClientAccess:
    """The access of a client; ValueError if it cannot come in."""
    access = find_access(topology, user, listener)
    if isinstance(access, ClientAccess):
        return access
    raise ValueError(access.text)


def _listeners(topology: Topology) -> dict[str, ListenerSpec]:
    """The listeners of all brokers by name, those of the first broker first."""
    listeners: dict[str, ListenerSpec] = {}
    for spec in topology.brokers:
        for one in spec.all_listeners:
            listeners.setdefault(one.name, one)
    return listeners


def _listener_for(user: str | None, listeners: Sequence[ListenerSpec]) -> ListenerSpec:
    """The listener of a client that names none."""
    protocols = [each.protocol for each in listeners]
    if user is None:
        plain = [not each.has_sasl and not each.has_tls for each in protocols]
    else:
        plain = [each.has_sasl for each in protocols]
        if not any(plain):
            plain = [each.has_tls for each in protocols]
    return listeners[plain.index(True)] if any(plain) else listeners[0]


def _by_sasl(
    topology: Topology, listener: ListenerSpec, name: str | None, wanted: str | None
) -> ClientAccess | AccessProblem:
    broker = next(spec for spec in topology.brokers if listener in spec.all_listeners)
    texts = topology.config_texts(broker.id)
    enabled = enabled_mechanisms([listener], texts)
    if wanted is not None:
        if wanted.upper() not in enabled:
            return AccessProblem("mechanism", unknown("mechanism", wanted, enabled))
        enabled = (wanted.upper(),)
    users = _users(topology, listener, texts)
    if name is None:
        for user in users.values():
            mechanism = _mechanism(user, enabled)
            if mechanism is not None:
                return _access(listener, mechanism, user)
        text = f"the listener {listener.name} requires a login, and no user is known; {_NO_USERS}"
        return AccessProblem("", text)
    known = users.get(name)
    if OAUTHBEARER in enabled and (known is None or wanted is not None):
        return ClientAccess(listener.name, listener.protocol, OAUTHBEARER, name)
    if known is None:
        return AccessProblem("user", unknown("user", name, users) if users else _NO_USERS)
    mechanism = _mechanism(known, enabled)
    if mechanism is None:
        if wanted is not None:
            return AccessProblem("mechanism", f"{name} does not log in by {enabled[0]}")
        text = f"{name} has no mechanism of the listener {listener.name}, which has"
        return AccessProblem("user", f"{text} {', '.join(enabled)}")
    return _access(listener, mechanism, known)


def _users(
    topology: Topology, listener: ListenerSpec, texts: Mapping[str, str]
) -> dict[str, UserSpec]:
    """The users of a listener: first the topology's, then its sasl.jaas.config's."""
    users = {user.name: user for user in topology.security.users}
    for name, password in jaas_passwords(listener.name, texts).items():
        if name not in users or not users[name].password:
            users[name] = UserSpec(name, password, (PLAIN,))
    return users


def _by_certificate(
    topology: Topology, listener: ListenerSpec, user: str
) -> ClientAccess | AccessProblem:
    broker = next(spec for spec in topology.brokers if listener in spec.all_listeners)
    texts = TlsTexts(listener.name, listener.protocol, topology.config_texts(broker.id), {})
    if texts.get("ssl.client.auth") == "none":
        text = f"{user} cannot be identified: the listener {listener.name} asks for no certificate"
        return AccessProblem("user", f"{text}; set ssl.client.auth")
    rules = mapping_rules(texts.get("ssl.principal.mapping.rules") or "DEFAULT")
    name = principal_name(rules, certificate_subject(user))
    if name is None:
        text = f"no rule of ssl.principal.mapping.rules applies to {certificate_subject(user)}"
        return AccessProblem("user", text)
    return ClientAccess(listener.name, listener.protocol, user=user, certified_name=name)


def _mechanism(user: UserSpec, enabled: Sequence[str]) -> str | None:
    return next((x for x in _STRONGEST_FIRST if x in enabled and user.logs_in_by(x)), None)


def _access(listener: ListenerSpec, mechanism: str, user: UserSpec) -> ClientAccess:
    return ClientAccess(listener.name, listener.protocol, mechanism, user.name, user.password)
