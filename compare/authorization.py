"""Records what Apache Kafka answers to users without rights, for tests/broker/authorization/.

    python -m compare.authorization --properties 9092 > server.properties
    (format and start one broker of the release with these properties)
    python -m compare.authorization --bootstrap 127.0.0.1:9092

Owns: the properties of that broker, the ACLs and topics for the cases, the two files of answers.
Never: starts a broker; compares (tests/broker/authorization/test_answers.py does).
"""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.security.authorizer import STANDARD_AUTHORIZER
from kcluster.security.sasl.plain import PlainClient
from tests.broker.authorization.cases import DENIED, PARTLY, RIGHTS, Case, shown
from tests.rig.logins import SaslLine

ADMIN, USER = "admin", "bob"
TOPICS: Final = ("orders", "secret", "log")
GROUPS: Final = ("g", "gg", "h")
FILES: Final = Path(__file__).parents[1] / "tests/broker/authorization"
SETTLE_S: Final = 1.0
"""How long a change may take to be known everywhere."""

_JAAS: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    f' username="{ADMIN}" password="{ADMIN}" user_{ADMIN}="{ADMIN}" user_{USER}="{USER}";'
)


def properties(port: int) -> str:
    """server.properties of the broker to ask, also a controller; every password is its user."""
    controller = port + 1
    return f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=SASL_PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=SASL_PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=CONTROLLER:SASL_PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
inter.broker.listener.name=SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={_JAAS}
listener.name.controller.plain.sasl.jaas.config={_JAAS}
authorizer.class.name={STANDARD_AUTHORIZER}
super.users=User:{ADMIN}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


class Connection:
    """A user's connection; CLOSED once the broker has ended it."""

    def __init__(self, address: tuple[str, int], user: str) -> None:
        self._line = SaslLine(socket.create_connection(address, 10))
        answer = self._line.login(PlainClient(user, user))
        assert not answer.error_code, answer

    def ask(self, api: ApiKey, version: int, body: Any) -> Any:
        """The answer to a request; None if the broker closes the connection instead."""
        self._line.sock.sendall(b"".join(encode_request_frame(api, version, 1, "test", body)))
        frame = self._line.read_frame()
        return None if frame is None else decode_response_frame(api, version, frame)[1]


def prepare(admin: Connection) -> dict[str, bytes]:
    """Make the topics; returns their ids."""
    wanted = m.DeleteAclsRequest.DeleteAclsFilter(1, None, 1, None, None, 1, 1)
    admin.ask(ApiKey.DELETE_ACLS, 3, m.DeleteAclsRequest([wanted]))
    admin.ask(ApiKey.DELETE_GROUPS, 2, m.DeleteGroupsRequest(list(GROUPS)))
    admin.ask(ApiKey.DELETE_TOPICS, 5, m.DeleteTopicsRequest(topic_names=list(TOPICS)))
    time.sleep(SETTLE_S)
    topic = m.CreateTopicsRequest.CreatableTopic
    admin.ask(
        ApiKey.CREATE_TOPICS,
        7,
        m.CreateTopicsRequest([topic(name, 2, 1) for name in TOPICS], 9_000),
    )
    for kind in (0, 1):
        keys = m.FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
        while admin.ask(ApiKey.FIND_COORDINATOR, 6, keys).coordinators[0].error_code:
            time.sleep(SETTLE_S)
    described = admin.ask(ApiKey.METADATA, 12, m.MetadataRequest(None))
    return {topic.name: topic.topic_id for topic in described.topics}


def allow(admin: Connection) -> None:
    """Create the ACLs for the cases of PARTLY."""
    creation = m.CreateAclsRequest.AclCreation
    acls = [
        creation(
            each.resource_type.code,
            each.resource_name,
            each.pattern_type.code,
            each.principal,
            each.host,
            each.operation.code,
            each.permission.code,
        )
        for each in RIGHTS
    ]
    answer = admin.ask(ApiKey.CREATE_ACLS, 3, m.CreateAclsRequest(acls))
    assert not any(row.error_code for row in answer.results), answer
    time.sleep(SETTLE_S)


def record(
    address: tuple[str, int], cases: Sequence[Case], ids: dict[str, bytes], file: Path
) -> None:
    """Ask each case on a connection of its own, and write the answers."""
    lines = []
    for case in cases:
        answer = Connection(address, USER).ask(case.api, case.version, case.body(ids))
        lines.append(f"{case.name}: {'closed' if answer is None else shown(answer)}\n")
    file.write_text("".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--properties", type=int, metavar="PORT", help="print server.properties")
    parser.add_argument("--bootstrap", help="the address of the broker to ask")
    options = parser.parse_args()
    if options.properties is not None:
        print(properties(options.properties), end="")
        return
    host, _, port = options.bootstrap.rpartition(":")
    address = host, int(port)
    admin = Connection(address, ADMIN)
    ids = prepare(admin)
    record(address, DENIED, ids, FILES / "denied_4_4_0.txt")
    allow(admin)
    record(address, PARTLY, ids, FILES / "partly_4_4_0.txt")


if __name__ == "__main__":
    main()
