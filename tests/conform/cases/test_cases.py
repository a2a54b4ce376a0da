"""The cases: their versions, and what they ask of a secured cluster."""

from __future__ import annotations

from kcluster.broker.registry import SERVED_APIS
from kcluster.conform.case import Case
from kcluster.conform.cases import families
from kcluster.conform.references import NEWEST, REFERENCES
from kcluster.protocol.apis import ApiKey

OLDER = REFERENCES[1]


def test_case__versions() -> None:
    assert Case("", ApiKey.FETCH, {}, "4,7-9,17+").each_version(NEWEST) == [4, 7, 8, 9, 17, 18]
    of_transactions = Case("", ApiKey.INIT_PRODUCER_ID)
    assert of_transactions.each_version(NEWEST) == [0, 1, 2, 3, 4, 5], "6 is unstable"


def test_case__an_older_release_is_asked_only_what_it_serves() -> None:
    assert Case("", ApiKey.API_VERSIONS, {}, "newest").each_version(NEWEST) == [5]
    assert Case("", ApiKey.API_VERSIONS, {}, "newest").each_version(OLDER) == [4]
    assert Case("", ApiKey.API_VERSIONS, {}, "5").each_version(OLDER) == []
    assert Case("", ApiKey.UNREGISTER_CONTROLLER).each_version(OLDER) == []
    assert Case("", ApiKey.VOTE).each_version(OLDER) == [0, 1, 2], "the controllers' own"


OWN_CASES = {
    ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}  # fmt: skip
"""Conversations log in; telemetry is listed only with a reporter of metrics."""


def test_rights__every_api_is_asked_by_each_role() -> None:
    asked = {case.api for case in families(NEWEST)["rights"] if case.by_each_role}
    assert set(SERVED_APIS) - OWN_CASES <= asked
