"""What stands on aiokafka, in virtual time.

faust-streaming is not in the `dev` extra (it wants an older click than this project):
`pip install --no-deps` it, or run this file in an environment of its own.
"""

from __future__ import annotations

import pytest

pytest.importorskip("aiokafka")

from tests.world.rig import ORDERS, in_virtual_time

pytestmark = [pytest.mark.pure_python, pytest.mark.filterwarnings("default")]


def test_a_stream_application_of_faust_processes_each_record_through_a_failover() -> None:
    pytest.importorskip("faust")
    from tests.world.bodies import frameworks

    with in_virtual_time() as cluster:
        processed = frameworks.stream_application(cluster)
    assert sorted(processed) == sorted(b"order %d" % number for number in range(50))


def test_streams_of_kstreams_process_each_record_through_a_failover() -> None:
    pytest.importorskip("kstreams")
    from tests.world.bodies import streams

    with in_virtual_time({**ORDERS, "invoices": {"replication_factor": 3}}) as cluster:
        orders, invoices = streams.stream_engine(cluster)
    assert sorted(orders) == sorted(b"order %d" % number for number in range(30))
    assert sorted(invoices) == sorted(b"invoice %d" % number for number in range(30))


def test_a_web_service_serves_and_consumes_in_one_loop_through_a_failover() -> None:
    from tests.world.bodies import frameworks

    with in_virtual_time() as cluster:
        answered = frameworks.web_service(cluster)
    assert sorted(answered) == sorted(f"order {number}" for number in range(20))
