"""These tests count with a real client."""

from __future__ import annotations

import pytest

pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")
