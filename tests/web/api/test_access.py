"""The settings of client libraries over HTTP, and by the command line."""

from __future__ import annotations

from tests.web.api_client import Api

SECURED = {
    "brokers": 1,
    "listeners": {"CLIENT": {"protocol": "SASL_PLAINTEXT"}},
    "security": {"users": {"alice": "alice-secret"}},
}


def test_client_config__is_the_settings_and_their_text(api: Api) -> None:
    path = f"{api.cluster(topology=SECURED)}/client-config"
    answer = api.ok("GET", f"{path}?library=librdkafka&user=alice")
    assert answer["settings"]["sasl.password"] == "alice-secret"
    assert "sasl.password=alice-secret" in answer["text"].splitlines()
    by_plain = api.ok("GET", f"{path}?library=librdkafka&mechanism=PLAIN")["settings"]
    assert by_plain["sasl.mechanism"] == "PLAIN"
    problem = api.ask("GET", f"{path}?library=cobol")
    assert problem.status == 422
    stranger = api.ask("GET", f"{path}?user=eve")
    assert stranger.status in (409, 422)
    assert "alice-secret" not in str(stranger.value)
