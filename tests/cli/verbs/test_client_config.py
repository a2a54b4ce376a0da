"""`kcluster client-config`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Start = Callable[..., Any]
Verb = Callable[..., tuple[int, str, str]]

TOPOLOGY = """\
name: lab
profile: fast
brokers: 1
listeners: {CLIENT: {protocol: SASL_PLAINTEXT}}
security: {users: {alice: alice-secret}}
"""


def test_client_config__prints_settings_for_a_file(
    start_up: Start, kcluster: Verb, tmp_path: Path
) -> None:
    (tmp_path / "topology.yaml").write_text(TOPOLOGY)
    start_up()
    code, out, _ = kcluster("client-config", "java", "--user", "alice")
    assert code == 0
    assert "sasl.mechanism=SCRAM-SHA-512" in out.splitlines()
    _, out, _ = kcluster("client-config", "java", "--user", "alice", "--mechanism", "plain")
    assert "sasl.mechanism=PLAIN" in out.splitlines()
    code, _, err = kcluster("client-config", "java", "--mechanism", "SCRAM-SHA-265")
    assert code != 0
    assert "SCRAM-SHA-256" in err
    code, _, err = kcluster("client-config", "java", "--user", "alcie")
    assert code != 0
    assert "alice" in err
    assert "alice-secret" not in err
