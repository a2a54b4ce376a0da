"""The conversations: their names, and that each one asks for something."""

from __future__ import annotations

from kcluster.conform.case import Ask
from kcluster.conform.conversations import conversations


def test_conversations__each_name_is_used_once_and_each_asks() -> None:
    found = conversations()
    assert len(found) > 50
    for name, conversation in found.items():
        assert conversation.name == name
        assert any(isinstance(step, Ask) for step in conversation.steps) or conversation.is_secured
