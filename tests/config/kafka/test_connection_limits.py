"""max.connections.per.ip.overrides as Kafka 4.3.1 accepts and refuses them."""

from __future__ import annotations

import pytest

from kcluster.config.kafka.connection_limits import address_of, parse_overrides
from kcluster.config.kafka.definitions import BROKER_CONFIGS, ConfigError, parse_value


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", {}),
        ("127.0.0.9:2", {"127.0.0.9": 2}),
        (" 127.0.0.9 : 2 , localhost:50 ", {"127.0.0.9": 2, "127.0.0.1": 50}),
        ("127.0.0.9:1,127.0.0.9:3", {"127.0.0.9": 3}),
        ("127.0.0.9:1,,", {"127.0.0.9": 1}),
        ("127.0.0.9:-1", {"127.0.0.9": -1}),
        ("::1:3", {"::1": 3}),
        ("0:0:0:0:0:0:0:1:4", {"::1": 4}),
        ("nosuchhost.invalid:3", {"nosuchhost.invalid": 3}),
    ],
)
def test_overrides__are_read(text: str, limits: dict[str, int]) -> None:
    assert parse_overrides(text) == limits


@pytest.mark.parametrize(
    "text",
    ["127.0.0.9", "127.0.0.9:x", "[::1]:3", "a:1,b", ",a:1", "a:99999999999", "a:2147483648"],
)
def test_overrides__are_refused(text: str) -> None:
    definition = BROKER_CONFIGS["max.connections.per.ip.overrides"]
    assert isinstance(parse_value(definition, text), ConfigError)


def test_address__one_spelling_for_each() -> None:
    names = ["localhost", "LOCALHOST", "10.0.0.1", "0:0::0:1", "example.org"]
    found = ["127.0.0.1", "127.0.0.1", "10.0.0.1", "::1", "example.org"]
    assert [address_of(name) for name in names] == found
