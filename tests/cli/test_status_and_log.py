"""What `status` and `log` print, from values: no cluster runs here."""

from __future__ import annotations

from typing import Any

from kcluster.cli.status_tables import links_text, notices, tables_of
from kcluster.cli.table import fitted, plain_lines
from kcluster.protocol.releases import latest
from kcluster.runs.bars import block, digit
from kcluster.runs.log_drawing import drawing_of


def broker(number: int, state: str = "up", fenced: bool = False) -> dict[str, Any]:
    return {
        "id": number,
        "host": "127.0.0.1",
        "port": 9091 + number,
        "rack": None,
        "state": state,
        "fenced": fenced,
        "kafka_version": latest().name,
    }


def partition(topic: str, number: int, leader: int | None, lag: dict[str, int]) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": number,
        "leader": leader,
        "leader_epoch": 4,
        "replicas": [1, 2, 3],
        "isr": [1, 2],
        "high_watermark": None if leader is None else 90,
        "log_end_offset": None if leader is None else 100,
        "lag": lag,
    }


def status_of(**changed: Any) -> dict[str, Any]:
    return {
        "name": "lab",
        "controller_id": 3000,
        "brokers": [broker(1), broker(2), broker(3, "paused", fenced=True)],
        "partitions": [
            partition("__consumer_offsets", 0, 1, {}),
            partition("audit", 0, 1, {"2": 0, "3": 10}),
            partition("audit", 1, None, {}),
        ],
        "cuts": [],
        "sides": [[1, 2, 3, 3000]],
        "shapes": [],
        "rules": [],
        "clients": {},
        **changed,
    }


STATUS = """\
broker  address         rack  state           leads           in sync
1       127.0.0.1:9092  -     up              1 (+1 internal)  2/2 (+1/1 internal)
2       127.0.0.1:9093  -     up              0 (+0 internal)  2/2 (+1/1 internal)
3       127.0.0.1:9094  -     paused, fenced  0 (+0 internal)  0/2 (+0/1 internal)

partition  leader  epoch  replicas  isr  hw  end  lag
audit-0    1       4      1,2,3     1,2  90  100  3:10
audit-1    -       4      1,2,3     1,2  -   -    -"""


def test_status__counts_users_topics_apart_from_internal_ones() -> None:
    brokers, partitions = tables_of(status_of(), None)
    lines = [*plain_lines(brokers), "", *plain_lines(partitions)]
    assert [line.split() for line in lines] == [line.split() for line in STATUS.splitlines()]


def test_status__a_narrow_terminal_does_without_lag_first_and_never_without_the_name() -> None:
    _, partitions = tables_of(status_of(), None)
    heads = {width: fitted(partitions, width).headers for width in (100, 50, 45, 10)}
    assert heads[100] == ("partition", "leader", "epoch", "replicas", "isr", "hw", "end", "lag")
    assert heads[50] == ("partition", "leader", "epoch", "replicas", "isr", "hw", "end")
    assert heads[45] == ("partition", "leader", "replicas", "isr", "hw", "end")
    assert heads[10] == ("partition", "leader", "isr", "hw")
    assert plain_lines(fitted(partitions, 45))[1] == "audit-0    1       1,2,3     1,2  90  100"


def test_status__shows_every_fault_in_force() -> None:
    status = status_of(
        cuts=[[1, 2], [2, 1], [3, 3000]],
        sides=[[1], [2, 3, 3000]],
        shapes=[{"links": [[1, 3], [3, 1]], "text": "latency 40 ms"}],
        rules=[{"name": "late", "text": "delays the reply by 5 ms", "calls": 1200, "hits": 3}],
    )
    assert notices(status, None) == [
        "and 1 partitions of internal topics (--topic __consumer_offsets)",
        "the network is split: 1 | 2, 3, controller",
        "cut: 1-2, 3>controller",
        "slow: 1-3: latency 40 ms",
        "rule late: delays the reply by 5 ms; applied to 3 of 1,200 requests",
        "paused: broker 3",
    ]


def test_status__names_clients_and_counts_what_a_line_cannot_hold() -> None:
    status = status_of(clients={"1000000": "shop"})
    links = [[1, 1000000], *([1, broker] for broker in range(2, 10))]
    assert links_text(links, status) == "1>client shop, 1>2, 1>3, 1>4, 1>5, 1>6 and 3 more"


def replica(number: int, standing: str, end: int, *epochs: list[int], **more: Any) -> Any:
    return {
        "broker": number,
        "standing": standing,
        "log_start_offset": 0,
        "log_end_offset": end,
        "high_watermark": None,
        "epochs": list(epochs),
        **more,
    }


def logs_of(*replicas: Any) -> dict[str, Any]:
    return {
        "topic": "orders",
        "partition": 0,
        "leader": 3,
        "leader_epoch": 2,
        "isr": [3, 1],
        "replicas": list(replicas),
    }


LOGS = """\
orders-0  leader 3, epoch 2, ISR 3,1
  broker 1  in sync           00000222|      end 8, hw 8
  broker 2  down, 3 ahead     000001111111   end 12
♛ broker 3  leader            00000222|2     end 9, hw 8
  0 epoch 0  1 epoch 1  2 epoch 2   | high watermark   a cell is 1 offset"""


def test_log__is_drawn_by_epoch_and_names_a_replica_that_is_ahead() -> None:
    logs = logs_of(
        replica(1, "in sync", 8, [0, 0], [2, 5], high_watermark=8),
        replica(2, "down, 3 ahead", 12, [0, 0], [1, 5]),
        replica(3, "leader", 9, [0, 0], [2, 5], high_watermark=8),
    )
    drawn = drawing_of(logs, digit)
    assert [line.split() for line in drawn] == [line.split() for line in LOGS.splitlines()]
    bars = [line.index("end ") for line in drawn[1:4]]
    assert len(dict.fromkeys(bars)) == 1, "the numbers stand below each other"
    assert "[cyan]█[/][yellow]█[/]" in "\n".join(drawing_of(logs, block))


def test_log__a_long_one_has_cells_of_many_offsets_from_the_oldest_start_on() -> None:
    log = replica(1, "leader", 1_000_480, [0, 0], high_watermark=1_000_480)
    log["log_start_offset"] = 1_000_000
    _, drawn, legend = drawing_of(logs_of(log), digit)
    assert drawn.count("0" * 48) == 1
    assert drawn.endswith("|  start 1000000, end 1000480, hw 1000480")
    assert legend.endswith("a cell is 10 offsets")


def test_log__of_a_partition_without_records_has_no_cells() -> None:
    assert drawing_of(logs_of(replica(3, "leader", 0, high_watermark=0)), digit) == [
        "orders-0  leader 3, epoch 2, ISR 3,1",
        "♛ broker 3  leader  |  end 0, hw 0",
    ]
