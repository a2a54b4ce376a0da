"""Limits on connections, decided without a socket.  Times and counts were measured with Kafka
4.3.1 and the same number of simultaneous connections."""

from __future__ import annotations

import math

from kcluster.broker.quotas.connection_quotas import ConnectionQuotas, RefusedConnection
from kcluster.metadata.records import ClientQuotaRecord
from tests.rig.one_broker import OneBroker, broker_config, broker_records

ADDRESS, OTHER_ADDRESS = "127.0.0.9", "127.0.0.8"
NOW = 1_000_000
LISTENER = "PLAINTEXT"


def limited(**configs: str) -> tuple[OneBroker, ConnectionQuotas]:
    one = OneBroker(broker_records(1))
    if configs:
        set_configs(one, **configs)
    return one, ConnectionQuotas(one.broker.view, one.broker.quotas)


def set_configs(one: OneBroker, **configs: str) -> None:
    records = [broker_config("1", n.replace("_", "."), text) for n, text in configs.items()]
    one.apply(records, NOW)


def set_quota(one: OneBroker, address: str | None, rate: float | None) -> None:
    record = ClientQuotaRecord((("ip", address),), "connection_creation_rate", rate)
    one.apply([record], NOW)


def connect(quotas: ConnectionQuotas, address: str, now_ms: int = NOW) -> RefusedConnection | None:
    """One connection arrives; returns why it is refused, or None."""
    assert quotas.arrived(LISTENER, now_ms) == 0
    return quotas.admit(LISTENER, address, now_ms)


def keep_ms(quotas: ConnectionQuotas, address: str, now_ms: int = NOW) -> int | None:
    """How long a new connection stays unserved; None: it is served."""
    refusal = connect(quotas, address, now_ms)
    return None if refusal is None else refusal.keep_ms


# ----------------------------------------------------------------------- the rate of all


def test_rate__unused_quota_is_spent_before_connections_wait() -> None:
    _, quotas = limited(max_connection_creation_rate="2")
    waits, now_ms = [], NOW
    for _ in range(24):
        waits.append(quotas.arrived(LISTENER, now_ms))
        now_ms += waits[-1]
    assert waits == [0] * 20 + [500, 500, 1000, 1000]


def test_rate__counts_connections_from_before_the_limit() -> None:
    one, quotas = limited()
    assert [quotas.arrived(LISTENER, NOW) for _ in range(30)] == [0] * 30
    set_configs(one, max_connection_creation_rate="2")
    assert quotas.arrived(LISTENER, NOW + 500) == 1000
    assert quotas.arrived(LISTENER, NOW + 30_000) == 0


def waits_of(quotas: ConnectionQuotas, listener: str, count: int) -> list[int]:
    """The times for which as many connections would have to wait."""
    return [quotas.arrived(listener, NOW) for _ in range(count)]


def test_rate__the_listener_has_a_limit_too() -> None:
    one, quotas = limited(listener_name_plaintext_max_connection_creation_rate="1")
    assert waits_of(quotas, LISTENER, 12) == [0] * 10 + [1000] * 2
    assert waits_of(quotas, "CLIENT", 40) == [0] * 40
    set_configs(one, max_connection_creation_rate="2")
    assert waits_of(quotas, "CLIENT", 1) == [1000]


# ------------------------------------------------------------------------ the rate of one


def test_address__twenty_are_accepted_and_the_rest_held_for_half_a_second() -> None:
    one, quotas = limited()
    set_quota(one, ADDRESS, 2.0)
    held_ms = [keep_ms(quotas, ADDRESS) for _ in range(26)]
    assert held_ms == [None] * 20 + [500] * 6
    assert keep_ms(quotas, OTHER_ADDRESS) is None
    assert keep_ms(quotas, ADDRESS, NOW + 4_030) == 470


def test_address__a_refused_connection_counts_in_no_quota() -> None:
    one, quotas = limited(max_connection_creation_rate="2", max_connections_per_ip="11")
    set_quota(one, ADDRESS, 1.0)
    held_ms = [keep_ms(quotas, ADDRESS) for _ in range(30)]
    assert held_ms == [None] * 10 + [1000] * 20
    assert [keep_ms(quotas, OTHER_ADDRESS) for _ in range(10)] == [None] * 10
    set_quota(one, ADDRESS, None)
    assert keep_ms(quotas, ADDRESS, NOW + 30_000) is None  # the eleventh


def test_address__the_reason_is_reported_once() -> None:
    one, quotas = limited()
    set_quota(one, ADDRESS, 1.0)
    refusals = [connect(quotas, ADDRESS) for _ in range(12)]
    reasons = [refusal.reason for refusal in refusals if refusal is not None]
    assert ["connection_creation_rate is 1" in reason for reason in reasons] == [True, False]
    assert reasons[1] == ""


def test_address__the_quota_of_all_others() -> None:
    one, quotas = limited()
    set_quota(one, None, 1.0)
    set_quota(one, ADDRESS, 3.0)
    assert [quotas.max_rate_of(a) for a in (ADDRESS, OTHER_ADDRESS, "::1")] == [3, 1, 1]
    set_quota(one, ADDRESS, None)
    assert quotas.max_rate_of(ADDRESS) == 1
    set_quota(one, None, None)
    assert quotas.max_rate_of(ADDRESS) == 2**31 - 1


def test_address__any_of_its_host_names_matches() -> None:
    one, quotas = limited()
    set_quota(one, "localhost", 4.0)
    set_quota(one, "0:0:0::1", 5.0)
    assert [quotas.max_rate_of(a) for a in ("127.0.0.1", "::1")] == [4, 5]


def test_address__a_quota_of_nan_admits_no_connection() -> None:
    one, quotas = limited()
    set_quota(one, ADDRESS, math.nan)
    assert keep_ms(quotas, ADDRESS) == 1000


# --------------------------------------------------------------------------- how many


def test_max__connections_above_it_wait_for_a_free_slot() -> None:
    _, quotas = limited(max_connections="2")
    assert [connect(quotas, ADDRESS), connect(quotas, OTHER_ADDRESS)] == [None, None]
    assert not quotas.has_room(LISTENER)
    quotas.closed(LISTENER, OTHER_ADDRESS)
    assert quotas.has_room(LISTENER)


def test_max__lowered_counts_the_excess_connections() -> None:
    one, quotas = limited()
    for _ in range(7):
        assert connect(quotas, ADDRESS) is None
    assert quotas.excess == 0
    set_configs(one, max_connections="4")
    assert quotas.excess == 3
    set_configs(one, max_connections="9", listener_name_plaintext_max_connections="4")
    assert (quotas.excess, quotas.has_room(LISTENER), quotas.has_room("CLIENT")) == (0, False, True)


def test_max_of_address__connections_above_it_are_closed_at_once() -> None:
    _, quotas = limited(
        max_connections_per_ip="1", max_connections_per_ip_overrides=f"{ADDRESS}:2,localhost:0"
    )
    assert [keep_ms(quotas, ADDRESS) for _ in range(3)] == [None, None, 0]
    assert [keep_ms(quotas, OTHER_ADDRESS) for _ in range(2)] == [None, 0]
    assert keep_ms(quotas, "127.0.0.1") == 0
    quotas.closed(LISTENER, ADDRESS)
    assert keep_ms(quotas, ADDRESS) is None
