"""The broker that most tests of handlers ask.

Owns: `one`, a broker whose image has no topics.  Never: asserts what a test is about.
"""

from __future__ import annotations

import pytest

from tests.rig.one_broker import OneBroker, broker_records


@pytest.fixture
def one() -> OneBroker:
    """Broker 1, alone and without topics; the test is its controller."""
    return OneBroker(broker_records(1))
