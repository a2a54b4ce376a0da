"""Imports the clients before their tests: the import of kafka-python warns, and warnings are errors
in tests."""

from __future__ import annotations

import pytest

for library in ("kafka", "aiokafka", "confluent_kafka"):
    pytest.importorskip(library)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "record":
            item.add_marker(pytest.mark.clients)
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
