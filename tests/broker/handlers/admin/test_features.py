"""UpdateFeatures as a broker forwards it, and what ApiVersions lists afterwards."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.registry import SERVED_APIS
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from tests.rig.cluster import Simulated
from tests.rig.one_broker import OneBroker, broker_records

ELR = "eligible.leader.replicas.version"
UP, SAFE = 1, 2


def updates(*wanted: tuple[str, int, int]) -> Any:
    Update = m.UpdateFeaturesRequest.FeatureUpdateKey
    return m.UpdateFeaturesRequest(
        feature_updates=[
            Update(feature=name, max_version_level=level, upgrade_type=how)
            for name, level, how in wanted
        ]
    )


@pytest.mark.parametrize(("version", "results"), [(0, ["a", "a"]), (1, ["a", "a"]), (2, [])])
def test_update_features__names_each_feature_until_version_1(
    version: int, results: list[str]
) -> None:
    one = OneBroker(broker_records(1))
    assert one.ask(ApiKey.UPDATE_FEATURES, version, updates(("a", 1, UP), ("a", 2, UP))) is None
    answer = one.controller_answers(m.UpdateFeaturesResponse(error_message=None))
    assert [(result.feature, result.error_message) for result in answer.results] == [
        (name, "NONE") for name in results
    ]


def test_update_features__an_error_fails_the_whole_request() -> None:
    one = OneBroker(broker_records(1))
    one.ask(ApiKey.UPDATE_FEATURES, 1, updates(("a", 1, UP)))
    error = ErrorCode.INVALID_UPDATE_VERSION
    answer = one.controller_answers(m.UpdateFeaturesResponse(error_code=error))
    assert (answer.error_code, answer.results) == (error, [])


def test_update_features__silence_of_the_controller_times_out() -> None:
    one = OneBroker(broker_records(1))
    one.ask(ApiKey.UPDATE_FEATURES, 2, updates())
    answer = one.pass_time(one.config.request_timeout_ms)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


def finalized(t: Simulated, broker: int) -> tuple[dict[str, int], int]:
    request = m.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    body = t.ask(broker, ApiKey.API_VERSIONS, 4, request).body
    levels = {feature.name: feature.max_version_level for feature in body.finalized_features}
    return levels, body.finalized_features_epoch


def test_update_features__every_broker_answers_the_new_level() -> None:
    t = Simulated()
    before, epoch = finalized(t, 3)
    assert before == {
        "group.version": 1,
        "metadata.version": 33,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
        ELR: 1,
    }
    answer = t.ask(1, ApiKey.UPDATE_FEATURES, 2, updates((ELR, 0, SAFE))).body
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    t.run_for(100)
    after, later = finalized(t, 3)
    assert after == {name: level for name, level in before.items() if name != ELR}
    assert later > epoch


def test_update_features__without_elr_no_elr_is_kept() -> None:
    t = Simulated(min_insync_replicas=3)
    t.ask(1, ApiKey.UPDATE_FEATURES, 2, updates((ELR, 0, SAFE)))
    t.kill(3)
    t.wait(lambda: t.isr == [1, 2])
    assert list(t.verbs.partition("orders", 0).elr) == []
    t.start(3)
    t.wait(lambda: t.isr == [1, 2, 3])
    t.ask(1, ApiKey.UPDATE_FEATURES, 2, updates((ELR, 1, UP)))
    t.kill(3)
    t.wait(lambda: t.isr == [1, 2])
    assert list(t.verbs.partition("orders", 0).elr) == [3]
    # What is noted stays noted, as 4.3.1 has it.
    t.ask(1, ApiKey.UPDATE_FEATURES, 2, updates((ELR, 0, SAFE)))
    t.run_for(1_000)
    assert list(t.verbs.partition("orders", 0).elr) == [3]


OFF = {"group.version": 0, "share.version": 0, "streams.version": 0}
OF_FEATURES = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: m.ConsumerGroupHeartbeatRequest(group_id="g"),
    ApiKey.SHARE_GROUP_HEARTBEAT: m.ShareGroupHeartbeatRequest(group_id="g"),
    ApiKey.SHARE_FETCH: m.ShareFetchRequest(group_id="g", member_id="m"),
    ApiKey.SHARE_ACKNOWLEDGE: m.ShareAcknowledgeRequest(group_id="g", member_id="m"),
    ApiKey.STREAMS_GROUP_HEARTBEAT: m.StreamsGroupHeartbeatRequest(group_id="g"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: m.ConsumerGroupDescribeRequest(group_ids=["g"]),
    ApiKey.SHARE_GROUP_DESCRIBE: m.ShareGroupDescribeRequest(group_ids=["g"]),
    ApiKey.STREAMS_GROUP_DESCRIBE: m.StreamsGroupDescribeRequest(group_ids=["g"]),
}


def error_for(t: Simulated, api_key: ApiKey) -> ErrorCode:
    body = t.ask(1, api_key, SERVED_APIS[api_key].max_version, OF_FEATURES[api_key]).body
    return error_of(getattr(body, "error_code", 0) or getattr(body, "groups", [body])[0].error_code)


@pytest.mark.parametrize("api_key", OF_FEATURES)
def test_features__apis_of_one_that_is_off_are_unsupported(api_key: ApiKey) -> None:
    t = Simulated(features=OFF)
    assert finalized(t, 1)[0].keys() == {"metadata.version", "transaction.version", ELR}
    assert error_for(t, api_key) is ErrorCode.UNSUPPORTED_VERSION
    on = updates(*((name, 1, UP) for name in OFF))
    assert t.ask(1, ApiKey.UPDATE_FEATURES, 2, on).body.error_code == ErrorCode.NONE
    t.run_for(100)
    assert error_for(t, api_key) is not ErrorCode.UNSUPPORTED_VERSION
