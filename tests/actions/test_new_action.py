"""A fault is added by one class: this one is behind every door, and no other file knows of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated

import pytest
from click.testing import CliRunner

from kcluster.actions.base import ACTIONS, Action, action, menu_items, repair_all
from kcluster.actions.kinds import BROKERS
from kcluster.actions.menu import MenuItem, menu_json
from kcluster.actions.recording import Recording, these
from kcluster.actions.stage import Stage, Undo
from kcluster.cli.click_tools import kcluster
from kcluster.config.files.fields import duration
from kcluster.config.topology.model import Topology
from kcluster.events.base import TaggedEvent
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.targets import Targets
from kcluster.operations.verbs import Verbs
from kcluster.runs.page.document import page_html
from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.language.reference import pages
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.language.schema import step_schema
from kcluster.scenario.perform import do
from kcluster.scenario.play.virtual import run_virtual
from kcluster.scenario.recorded import scenario_of
from kcluster.web.api.actions import perform_action
from kcluster.web.routes import ROUTES

TOPOLOGY = Topology.of(brokers=3, topics={"orders": {"assignment": [[1, 2, 3]]}}, profile="fast")


class BrokerJammed(TaggedEvent, frozen=True):
    """Something stuck to it."""

    broker: int

    @property
    def subject(self) -> str:
        return f"broker {self.broker}"


@pytest.fixture
def jammed() -> Iterator[set[int]]:
    """The brokers that are jammed, by an action that exists in this test only."""
    stuck: set[int] = set()

    @action("jam", short="brokers", example="jam: 1")
    class Jam(Action, frozen=True):
        """Jam brokers."""

        MENU = (MenuItem("broker", "Jam {broker}", "{broker}", ("up",)),)
        RECORDED_FROM = (BrokerJammed,)
        brokers: Annotated[Targets, BROKERS, "The brokers."]
        depth_ms: Annotated[int, duration(), "How deep."] = 10

        def affected(self, stage: Stage) -> tuple[int, ...]:
            return stage.nodes(self.brokers)

        def do(self, stage: Stage) -> Undo:
            chosen = stage.nodes(self.brokers)
            stuck.update(chosen)
            for broker in chosen:
                stage.dispatcher.note(BrokerJammed(broker))
            return lambda: stuck.difference_update(chosen)

        @classmethod
        def record(cls, event: BrokerJammed, recording: Recording) -> None:
            recording.add(cls(these([event.broker])), event)

        @classmethod
        def repair(cls, verbs: Verbs) -> Iterator[str]:
            stuck.clear()
            yield from ()

    yield stuck
    del ACTIONS["jam"]


@pytest.fixture
def cluster() -> Iterator[WorldCluster]:
    running = WorldCluster(TOPOLOGY, 1, record=False)
    running.open()
    yield running
    running.close()


def test_new_action__a_scenario_plays_it_and_undoes_it(jammed: set[int]) -> None:
    text = "{topology: {brokers: 3}, duration: 2s, steps: [{at: 1s, jam: 2, for: 500ms}]}"
    result = run_virtual(Scenario.parse(text), 1, lambda *_: None)
    assert [step.text for step in result.played] == ["jam (line 1)"]
    assert jammed == set()


def test_new_action__schema_reference_and_http_have_its_keys(jammed: set[int]) -> None:
    keys = step_schema()["anyOf"][0]["properties"]["jam"]["anyOf"][0]["properties"]
    assert set(keys) == {"brokers", "depth"}
    assert keys["depth"]["default"] == "10ms"
    assert pages()["jam"].example == "jam: 1"


def test_new_action__http_takes_what_the_schema_says() -> None:
    (route,) = [route for route in ROUTES if route.handler is perform_action]
    assert route.body == step_schema()


def test_new_action__the_page_has_it_in_its_menus(jammed: set[int]) -> None:
    (item,) = [item for verb, item in menu_items() if verb == "jam"]
    page = page_html("c1", menu_json(menu_items()))
    assert '{"verb":"jam","of":"broker","words":"Jam {broker}","value":"{broker}"' in page
    assert item.when == ("up",)


def test_menus__offer_what_a_clusters_security_allows() -> None:
    plain = Topology.of(brokers=1)
    of_users = Topology.of(brokers=1, listeners={"CLIENT": {"protocol": "SASL_PLAINTEXT"}})
    by_tls = Topology.of(brokers=1, listeners={"SSL": {}}, security={"tls": "auto"})
    verbs = [{verb for verb, _ in menu_items(each)} for each in (plain, of_users, by_tls)]
    assert verbs[1] - verbs[0] == {"end_sessions"}
    assert verbs[2] - verbs[0] == {"certificate"}


def test_menus__an_item_is_an_action_with_names_filled_in() -> None:
    names = {"broker": 1, "a": 1, "b": 2, "partition": "orders-0", "follower": 2}

    def filled(value: object) -> object:
        if isinstance(value, dict):
            return {key: filled(inner) for key, inner in value.items()}
        return names.get(value[1:-1], value) if isinstance(value, str) else value

    for verb, item in menu_items():
        step = parse_action(json.dumps({verb: filled(item.value)}))
        assert verb == step.action.VERB


def test_new_action__the_command_line_lists_and_explains_it(jammed: set[int]) -> None:
    listed = CliRunner().invoke(kcluster, ["fault"])
    assert "jam              Jam brokers." in listed.output
    explained = CliRunner().invoke(kcluster, ["fault", "jam", "--help"])
    assert "How deep." in explained.output


def test_new_action__it_is_a_verb_of_its_own(jammed: set[int]) -> None:
    helped = CliRunner().invoke(kcluster, ["jam", "--help"])
    assert "Usage: kcluster jam [OPTIONS] BROKERS" in helped.output
    assert "--depth VALUE" in helped.output
    assert "[default: 10ms]" in helped.output


def test_new_action__python_performs_it(jammed: set[int], cluster: WorldCluster) -> None:
    undo = do(cluster, "jam", "leader(orders-0)")
    assert jammed == {1}
    undo()
    assert jammed == set()


def test_new_action__a_record_repeats_it_and_a_repair_ends_it(
    jammed: set[int], cluster: WorldCluster
) -> None:
    cluster.perform_action(parse_action("jam: {brokers: 3, depth: 1s}").action)
    notes = [entry.note for entry in cluster.events()]
    recorded = Scenario.parse(scenario_of(notes, TOPOLOGY, "jammed", notes[0].at_ms))
    assert [step.verb for step in recorded.steps] == ["jam"]
    assert cluster.call(lambda: repair_all(cluster.verbs)) == []
    assert jammed == set()
