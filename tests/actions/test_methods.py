"""The methods of a cluster are its actions: the same parameters, one call of the driver."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from kcluster.actions import ACTIONS, made
from kcluster.cli.action_verbs import action_verb
from kcluster.config.files.fields import OneOf, Quantity, StructField, Whole, Words, fields_of
from kcluster.config.topology.model import Topology
from kcluster.handle.network import Network
from kcluster.handle.verbs import UserVerbs
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.errors import ClusterError
from kcluster.operations.status import NoteEntry
from kcluster.scenario.language.loader import ScenarioError, action_of, parse_action
from kcluster.scenario.perform import do

TOPOLOGY = Topology.of(brokers=3, topics={"orders": {"assignment": [[1, 2, 3]]}}, profile="fast")

METHODS: dict[Callable[..., Any], str] = {
    UserVerbs.kill: "kill",
    UserVerbs.start: "start",
    UserVerbs.pause: "pause",
    UserVerbs.resume: "resume",
    Network.isolate: "isolate",
    Network.bridge: "bridge",
    Network.slow_link: "slow",
    Network.lose: "lose",
    Network.limit_bandwidth: "limit_bandwidth",
    Network.heal: "heal",
}
OF_THE_CALL = {"self", "wait", "timeout_s"}


@pytest.fixture
def cluster() -> Iterator[WorldCluster]:
    running = WorldCluster(TOPOLOGY, 1, record=False)
    running.open()
    yield running
    running.close()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: str(method.__name__))
def test_method__has_the_fields_of_its_action_and_their_defaults(
    method: Callable[..., Any],
) -> None:
    fields = {field.name: field for field in fields_of(ACTIONS[METHODS[method]])}
    for name, parameter in inspect.signature(method).parameters.items():
        if name in OF_THE_CALL:
            continue
        assert name in fields, f"{method.__name__}: {name} is no field of its action"
        if parameter.default is not parameter.empty:
            assert parameter.default == fields[name].default, name


@pytest.mark.parametrize(
    "kill",
    [
        lambda cluster: cluster.kill("leader(orders-0)", wait=False),
        lambda cluster: do(cluster, "kill", "leader(orders-0)"),
        lambda cluster: cluster.perform_action(parse_action("kill: leader(orders-0)").action),
    ],
    ids=["method", "do", "http"],
)
def test_kill__finds_the_leader_and_kills_it_in_one_call(
    cluster: WorldCluster, monkeypatch: pytest.MonkeyPatch, kill: Callable[[WorldCluster], object]
) -> None:
    """Between two calls another broker may become the leader."""
    calls: list[object] = []
    call = cluster.driver.call

    def counted(function: Callable[[], Any]) -> Any:
        calls.append(function)
        return call(function)

    monkeypatch.setattr(cluster.driver, "call", counted)
    kill(cluster)
    assert len(calls) == 1
    assert [broker.state for broker in cluster.brokers()] == ["down", "up", "up"]


DOORS: dict[str, tuple[Callable[[WorldCluster], object], list[str]]] = {
    "python": (lambda cluster: cluster.kill(1, wait=False), ["handle/verbs.py", "handle/port.py"]),
    "http": (
        lambda cluster: cluster.perform_action(parse_action("kill: 1").action),
        ["handle/port.py"],
    ),
}
WALK = ["actions/stage.py", "actions/brokers.py", "operations/verbs.py", "runtime/dispatch.py"]


@pytest.mark.pure_python  # the frames of compiled functions are not to be seen
@pytest.mark.parametrize("door", DOORS)
def test_kill__the_walk_is_short(cluster: WorldCluster, door: str) -> None:
    """The files between a door and the dispatcher, but for the driver's: as architecture.md has
    them."""
    seen: list[str] = []

    def look(entry: NoteEntry) -> None:
        if entry.kind == "broker_down":
            files = [Path(frame.filename).as_posix() for frame in inspect.stack()]
            ours = [file.partition("/kcluster/")[2] for file in reversed(files)]
            seen.extend(file for file in dict.fromkeys(ours) if file)

    cluster.subscribe(look)
    act, first = DOORS[door]
    act(cluster)
    walked = [file for file in seen if not file.startswith(("drivers/", "kcluster/"))]
    assert walked == [*first, *WALK]
    assert len(walked) <= 6


@pytest.mark.parametrize(
    ("act", "refusal"),
    [
        (lambda cluster: cluster.kill(1, "hard"), "how=hard: no such way to die; there are kill,"),
        (lambda cluster: cluster.start(1, kafka_version="9.9"), "kafka_version=9.9: "),
        (lambda cluster: cluster.network.lose(1, share=1.0), "share=1.0: must be less than 1; use"),
        (
            lambda cluster: cluster.slow_link(1, latency_ms="5ms"),
            "latency_ms=5ms: must be a number",
        ),
        (lambda cluster: cluster.move("orders-0"), "no node is named"),
        (lambda cluster: cluster.cut(1, []), "no node is named"),
        (lambda cluster: cluster.cut(1, 3001), "there is no broker 3001; the brokers are 1, 2, 3"),
    ],
)
def test_method__refuses_what_its_field_does_not_take(
    cluster: WorldCluster, act: Callable[[WorldCluster], object], refusal: str
) -> None:
    with pytest.raises(ClusterError) as error:
        act(cluster)
    assert refusal in str(error.value)


ODD: list[Any] = [
    None, "", " ", "x\ny", "5ms", -1, 0, 2**63, 10**400, 1.5, math.nan, math.inf, True,
    [], [None], [[[]]], {}, {"a": 1}, object(), b"x", (1, 2),
]  # fmt: skip
VALID = {
    "topic": "orders", "name": "more", "partition": "orders-0", "to": 2, "id": 9, "broker_id": 1,
    "config": {"retention.ms": "1"}, "host": "localhost", "port": 9092, "share": 0.1, "speed": 0.5,
}  # fmt: skip


def _try_odd_values(names: Iterable[str], takes: Callable[[dict[str, Any]], object]) -> None:
    """Call `takes` with each odd value of each name; it fails by an error that is no refusal."""
    for name, value in product(names, ODD):
        with suppress(ClusterError, ScenarioError):
            takes({name: value})


@pytest.mark.parametrize("verb", ACTIONS)
def test_action__takes_or_refuses_any_value_of_each_field(cluster: WorldCluster, verb: str) -> None:
    fields = fields_of(ACTIONS[verb])
    required = {field.name: VALID.get(field.name, 1) for field in fields if field.required}
    names = {field.name: field.key for field in fields}

    def of_python(odd: dict[str, Any]) -> None:
        cluster.perform(verb, **{**required, **odd})

    def of_http(odd: dict[str, Any]) -> None:
        keys = {names[name]: value for name, value in {**required, **odd}.items()}
        cluster.perform_action(parse_action(json.dumps({verb: keys}, default=str)).action)

    _try_odd_values(names, of_python)
    _try_odd_values(names, of_http)


@pytest.mark.parametrize(
    "method",
    [*METHODS, UserVerbs.restart, UserVerbs.rolling_restart, UserVerbs.move, UserVerbs.elect,
     UserVerbs.leader, UserVerbs.create_topic, UserVerbs.delete_topic, UserVerbs.advertise,
     UserVerbs.add_rule, UserVerbs.remove_rule, UserVerbs.find, Network.cut, WorldCluster.set_speed,
     UserVerbs.wait_until_without, UserVerbs.wait_until_in_sync, UserVerbs.wait_until_settled,
     WorldCluster.partition, WorldCluster.logs, WorldCluster.events],
    ids=lambda method: str(method.__name__),
)  # fmt: skip
def test_method__takes_or_refuses_any_value_of_each_parameter(
    cluster: WorldCluster, method: Callable[..., Any]
) -> None:
    parameters = inspect.signature(method).parameters
    required = {
        name: VALID.get(name, 1)
        for name, parameter in parameters.items()
        if name != "self" and parameter.default is parameter.empty
    }
    cluster.waits = False
    takes = getattr(cluster, method.__name__)
    _try_odd_values([*parameters][1:], lambda odd: takes(**{**required, **odd}))


@pytest.mark.parametrize(
    "odd",
    [{}, {"condition": 5}, {"isr": 5}, {"isr": (1, 0, 3)}, {"leader": ("orders", 0)},
     {"leader": ("orders", -1, 1)}, {"condition": "settled", "within": math.nan},
     {"condition": "settled", "within": ""}, {"condition": "settled", "isr": ("orders", 0, 3)}],
    ids=str,
)  # fmt: skip
def test_wait__refuses_what_it_cannot_wait_for(cluster: WorldCluster, odd: dict[str, Any]) -> None:
    with pytest.raises(ClusterError):
        cluster.wait_for(**odd)


def test_kill__of_nothing_is_refused(cluster: WorldCluster) -> None:
    nothing: Any = None
    with pytest.raises(ClusterError, match="brokers=None: missing"):
        cluster.kill(nothing)


@pytest.mark.parametrize(("host", "port", "reason"), [
    ("localhost", 99_999, "port=99999: must be from 1 to 65535"),
    ("localhost", 0, "port=0: must be from 1 to 65535"),
    ("0.0.0.0", 9092, "clients cannot connect to it"),
])  # fmt: skip
def test_advertise__refuses_at_once_what_clients_cannot_use(
    cluster: WorldCluster, host: str, port: int, reason: str
) -> None:
    began_ms, bootstrap = cluster.clock().now_ms, cluster.bootstrap
    with pytest.raises(ClusterError, match=reason):
        cluster.advertise(1, host, port)
    assert (cluster.clock().now_ms, cluster.bootstrap) == (began_ms, bootstrap)


def test_heal__between_a_set_and_nothing_is_refused(cluster: WorldCluster) -> None:
    with pytest.raises(ClusterError, match="others=2: needs nodes"):
        cluster.heal(others=2)


def _wrong_value(field: StructField) -> object:
    """A value that the field does not take; None if it takes all."""
    if isinstance(field.kind, Quantity | Whole):
        return field.kind.low - 1
    takes_some = isinstance(field.kind, OneOf) or (
        isinstance(field.kind, Words) and not field.kind.lists and field.kind.wanted != "text"
    )
    return "no-such" if takes_some else None


WRONG = [
    (verb, field, value)
    for verb, cls in ACTIONS.items()
    for field in fields_of(cls)
    if (value := _wrong_value(field)) is not None
]


@pytest.mark.parametrize(
    ("verb", "field", "value"), WRONG, ids=[f"{v}.{f.key}" for v, f, _ in WRONG]
)
def test_refusal__names_what_was_typed(verb: str, field: StructField, value: Any) -> None:
    """From Python the field, with its unit; in a scenario and over HTTP the key."""
    with pytest.raises(ClusterError) as of_python:
        made(verb, {field.name: value})
    assert str(of_python.value).startswith(f"{field.name}={value}: ")
    with pytest.raises(ScenarioError) as of_file:
        action_of(verb, None, {field.key: value}, None)
    assert any(f"{verb}.{field.key}: " in line for line in str(of_file.value).splitlines())


@pytest.mark.parametrize("verb", ACTIONS)
def test_command_line__no_key_of_an_action_hides_an_option_of_all_verbs(verb: str) -> None:
    command = action_verb(verb)
    assert command is not None
    names = [parameter.name for parameter in command.params]
    assert len(names) == len(set(names))
    assert {"name", "as_json", "wait"} <= set(names)
    assert ("duration" in names) == ACTIONS[verb].CAN_BE_UNDONE


def test_command_line__what_cannot_be_undone_takes_no_for() -> None:
    lasting = {verb for verb, cls in ACTIONS.items() if not cls.CAN_BE_UNDONE}
    assert {"elect", "heal", "end_sessions", "expire_token"} <= lasting
    assert not lasting & {"kill", "pause", "isolate", "slow", "certificate", "acl"}


def test_network__is_a_part_whose_faults_end_by_themselves(cluster: WorldCluster) -> None:
    with cluster.network.cut(1, 2, one_way=True):
        assert not cluster.network().has_edge(1, 2)
        assert cluster.network().has_edge(2, 1)
    assert cluster.network().has_edge(1, 2)
