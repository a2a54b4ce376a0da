"""How the directories of a node are formatted."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from kcluster import Topology
from kcluster.apache_kafka.storage import format_arguments, format_broker, new_uuid
from kcluster.protocol.uuids import read_uuid
from kcluster.security.sasl.scram_keys import salted_password

CONFIG = {"eligible.leader.replicas.version": 0}
PROPERTIES = Path("/tmp/server.properties")


def test_uuid__is_one_that_tools_can_read() -> None:
    made = [new_uuid() for _ in range(300)]
    assert len(set(made)) == 300
    assert all(read_uuid(one) is not None and one[0] != "-" for one in made)


def test_format_broker__empties_the_directories_and_names_each(tmp_path: Path) -> None:
    old, new = tmp_path / "a", tmp_path / "b/c"
    (old / "orders-0").mkdir(parents=True)
    format_broker((old, new), 7, "cluster-uuid")
    assert [path.name for path in old.iterdir()] == ["meta.properties"]
    texts = [(one / "meta.properties").read_text() for one in (old, new)]
    assert texts[0].startswith("version=1\ncluster.id=cluster-uuid\nnode.id=7\ndirectory.id=")
    assert texts[0] != texts[1]


def test_format_arguments__have_the_features() -> None:
    topology = Topology.of(brokers=3, features={"share.version": 1}, config=CONFIG)
    assert format_arguments(topology, "uuid", PROPERTIES) == [
        *("format", "--cluster-id", "uuid", "--config", str(PROPERTIES)),
        *("--feature", "share.version=1"),
        *("--feature", "eligible.leader.replicas.version=0"),
    ]


def test_format_arguments__have_credentials_without_passwords() -> None:
    """Once for each user and mechanism, however many brokers there are."""
    secret = 'a,b]"c='
    topology = Topology.of(
        brokers=3,
        listeners={"IN": {"protocol": "SASL_PLAINTEXT"}},
        security={"users": {"alice": secret}},
    )
    words = format_arguments(topology, "uuid", PROPERTIES)
    given = [words[at + 1] for at, word in enumerate(words) if word == "--add-scram"]
    assert [one.partition("=")[0] for one in given] == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert secret not in " ".join(words)
    found = re.fullmatch(
        r"SCRAM-SHA-256=\[name=alice,salt=(.+),saltedpassword=(.+),iterations=4096\]", given[0]
    )
    assert found is not None
    salt, salted = (base64.b64decode(text) for text in found.groups())
    assert salted == salted_password("SCRAM-SHA-256", secret, salt, 4096)
