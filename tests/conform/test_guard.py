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


_Acl = m.CreateAclsRequest.AclCreation
_User = m.AlterUserScramCredentialsRequest.ScramCredentialDeletion
_Filter = m.DeleteAclsRequest.DeleteAclsFilter
OWN_USERS = (
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        m.AlterUserScramCredentialsRequest(deletions=[_User(f"{PREFIX}.user", 1)]),
    ),
    (
        ApiKey.CREATE_ACLS,
        m.CreateAclsRequest(
            [_Acl(resource_name=f"{PREFIX}.t", principal=f"User:{PREFIX}.user", host="*")]
        ),
    ),
    (ApiKey.DELETE_ACLS, m.DeleteAclsRequest([_Filter(principal_filter=f"User:{PREFIX}.user")])),
)
OTHERS = (
    (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        m.AlterUserScramCredentialsRequest(deletions=[_User("admin", 1)]),
    ),
    (
        ApiKey.CREATE_ACLS,
        m.CreateAclsRequest([_Acl(resource_name=f"{PREFIX}.t", principal="User:*", host="*")]),
    ),
    (
        ApiKey.CREATE_ACLS,
        m.CreateAclsRequest([_Acl(resource_name="*", principal=f"User:{PREFIX}.u", host="*")]),
    ),
    (ApiKey.DELETE_ACLS, m.DeleteAclsRequest([_Filter(principal_filter=None)])),
    (ApiKey.CREATE_DELEGATION_TOKEN, m.CreateDelegationTokenRequest()),
)


@pytest.mark.parametrize(("api", "request_"), OWN_USERS)
def test_guard__a_run_with_users_changes_them_and_their_rights(
    api: ApiKey, request_: m.Message
) -> None:
    assert refusal(api, request_, PREFIX, has_users=True) == ""
    assert refusal(api, request_, PREFIX) == "it would change the cluster itself"


@pytest.mark.parametrize(("api", "request_"), OTHERS)
def test_guard__a_run_with_users_changes_no_others(api: ApiKey, request_: m.Message) -> None:
    assert refusal(api, request_, PREFIX, has_users=True)


def test_guard__no_read_only_api_makes_or_deletes() -> None:
    words = ("CREATE", "DELETE", "ALTER", "UPDATE", "WRITE", "ADD", "REMOVE", "PRODUCE")
    assert [api for api in READ_ONLY if api.name.startswith(words)] == []
