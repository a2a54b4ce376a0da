"""The error table and ProtocolError."""

from __future__ import annotations

import re

from kcluster.protocol.errors import ErrorCode, ProtocolError

INDEFINITE = [
    "UNKNOWN_SERVER_ERROR", "NONE", "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT",
    "NETWORK_EXCEPTION", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NOT_CONTROLLER", "DUPLICATE_SEQUENCE_NUMBER",
    "KAFKA_STORAGE_ERROR", "FEATURE_UPDATE_FAILED", "NEW_LEADER_ELECTED", "GROUP_DELETION_FAILED",
    "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED",
]  # fmt: skip


def test_errors__codes_run_from_minus_1_to_136_without_a_gap() -> None:
    assert [code.value for code in ErrorCode] == list(range(-1, 137))
    assert ErrorCode(6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert int(ErrorCode.CONTROLLER_ID_NOT_REGISTERED) == 136


def test_errors__errors_after_a_possible_append_are_not_definite() -> None:
    assert [code.name for code in ErrorCode if not code.definite] == INDEFINITE


def test_errors__retriable_is_kafka_s_opinion() -> None:
    assert sum(code.retriable for code in ErrorCode) == 32
    assert ErrorCode.NOT_ENOUGH_REPLICAS.retriable
    assert not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.retriable
    assert not ErrorCode.REBALANCE_IN_PROGRESS.retriable


def test_errors__every_code_has_one_sentence() -> None:
    for code in ErrorCode:
        assert re.fullmatch(r"[^\n]{8,100}\.", code.text), code.name
    assert len({code.text for code in ErrorCode}) == len(ErrorCode)


def test_protocol_error__names_the_mistake_and_its_place() -> None:
    error = ProtocolError("not UTF-8", 17, "topics[2].name")
    assert str(error) == "topics[2].name: not UTF-8 at byte 17"
    assert (error.position, error.field_path, error.reason) == (17, "topics[2].name", "not UTF-8")
    assert str(ProtocolError("frame of -1 bytes", 0)) == "frame of -1 bytes at byte 0"
