"""What may be sent to a cluster that belongs to somebody."""

from __future__ import annotations

import pytest

from kcluster.conform.guard import READ_ONLY, refusal
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

PREFIX = "kcluster-conform-1"
_Topic = m.CreateTopicsRequest.CreatableTopic
_Resource = m.AlterConfigsRequest.AlterConfigsResource


@pytest.mark.parametrize(
    ("api", "request_"),
    [
        (ApiKey.CREATE_TOPICS, m.CreateTopicsRequest(topics=[_Topic(name=f"{PREFIX}.t")])),
        (ApiKey.JOIN_GROUP, m.JoinGroupRequest(group_id=f"{PREFIX}.g")),
        (ApiKey.INIT_PRODUCER_ID, m.InitProducerIdRequest(transactional_id=None)),
        (ApiKey.METADATA, m.MetadataRequest(topics=None)),
        (ApiKey.ALTER_CONFIGS, m.AlterConfigsRequest(resources=[_Resource(2, f"{PREFIX}.t")])),
    ],
)
def test_guard__what_is_of_the_run_may_be_changed(api: ApiKey, request_: m.Message) -> None:
    assert refusal(api, request_, PREFIX) == ""


@pytest.mark.parametrize(
    ("api", "request_"),
    [
        (ApiKey.CREATE_TOPICS, m.CreateTopicsRequest(topics=[_Topic(name="orders")])),
        (ApiKey.DELETE_TOPICS, m.DeleteTopicsRequest(topic_names=[f"{PREFIX}.t", "orders"])),
        (ApiKey.DELETE_GROUPS, m.DeleteGroupsRequest(groups_names=["billing"])),
        (ApiKey.JOIN_GROUP, m.JoinGroupRequest(group_id="")),
        (ApiKey.ELECT_LEADERS, m.ElectLeadersRequest(topic_partitions=None)),
        (ApiKey.UNREGISTER_BROKER, m.UnregisterBrokerRequest(broker_id=1)),
        (ApiKey.UPDATE_FEATURES, m.UpdateFeaturesRequest(validate_only=True)),
        (ApiKey.ALTER_CONFIGS, m.AlterConfigsRequest(resources=[_Resource(4, "1")])),
    ],
)
def test_guard__nothing_else_is_changed(api: ApiKey, request_: m.Message) -> None:
    assert refusal(api, request_, PREFIX)


def test_guard__no_read_only_api_makes_or_deletes() -> None:
    words = ("CREATE", "DELETE", "ALTER", "UPDATE", "WRITE", "ADD", "REMOVE", "PRODUCE")
    assert [api for api in READ_ONLY if api.name.startswith(words)] == []
