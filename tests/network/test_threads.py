"""Network threads that handshakes keep busy."""

from __future__ import annotations

from kcluster.network.threads import NetworkThread, NetworkThreads


def test_thread__does_one_thing_after_the_other() -> None:
    thread = NetworkThread()
    assert [thread.takes_up(now_us, 500) for now_us in (0, 100, 5_000)] == [500, 1_000, 5_500]
    assert thread.takes_up(5_200, 0) == 5_500, "what costs nothing waits too"
    assert thread.takes_up(6_000, 0) == 6_000


def test_threads__new_connections_take_turns() -> None:
    threads = NetworkThreads(3)
    chosen = [threads.assign() for _ in range(7)]
    assert chosen[0] is chosen[3] is chosen[6]
    assert len(set(map(id, chosen))) == 3
