"""How much slower than in its file a scenario for the profile `fast` is played.

Owns: Pace, and the two that there are.  Never: plays a scenario.  Kafka: no counterpart.

The profile `fast` divides Kafka's times by 100 on a simulated cluster.  A real Kafka has a tenth of
its times, or all of them: JVMs cannot keep shorter ones on a busy machine.  Then everything takes
ten times, or a hundred times, as long as in the file: the time between its steps, and every time
that the file sets, such as a latency or a config.  Producers send that much more slowly, so that
there are as many records between two steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.actions.admin import SetConfig
from kcluster.actions.base import Action
from kcluster.config.files.numbers import whole_number
from kcluster.config.topology.model import Topology
from kcluster.scenario.language.client_configs import PACES, TENTH, WHOLE
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.stage import ScenarioStage

_OF_ACTIONS: Final = ("latency_ms", "jitter_ms", "delay_ms", "throttle_ms", "reorder_ms")
"""Fields of actions with times that pass in the cluster.  All other times of a step are the
stage's, which keeps the pace."""


class Pace(Struct, frozen=True):
    """A pace.  `profile`: that of the brokers of a real Kafka; `client_profile`: one of PACES;
    `patience_ms`: the time after which an unanswered attempt counts as failed."""

    profile: str
    client_profile: str
    patience_ms: int

    @property
    def factor(self) -> int:
        """The ms of the cluster in one ms of the file."""
        return PACES[self.client_profile]

    def stretched(self, scenario: Scenario) -> Scenario:
        """The scenario with the times that pass in its cluster, and the rates, for brokers of this
        pace.  There are as many records as in the file."""
        steps = [replace(each, action=self._action(each.action)) for each in scenario.steps]
        topology = replace(self._topology(scenario.topology), profile=self.profile)
        producers = tuple(
            replace(each, rate_per_s=each.rate_per_s / self.factor)
            for each in scenario.workload.producers
        )
        return replace(
            scenario,
            topology=topology,
            workload=replace(scenario.workload, producers=producers),
            steps=tuple(steps),
        )

    def _action(self, action: Action) -> Action:
        values: dict[str, object] = {
            name: value * self.factor
            for name in _OF_ACTIONS
            if (value := getattr(action, name, None)) is not None
        }
        if isinstance(action, SetConfig):
            values["config"] = self._config(action.config)
        return replace(action, **values)

    def _topology(self, topology: Topology) -> Topology:
        network = topology.network
        links = [replace(x, latency_ms=x.latency_ms * self.factor) for x in network.links]
        return replace(
            topology,
            config=self._config(topology.config),
            brokers=tuple(replace(x, config=self._config(x.config)) for x in topology.brokers),
            topics={
                name: replace(topic, config=self._config(topic.config))
                for name, topic in topology.topics.items()
            },
            network=replace(
                network,
                default_latency_ms=network.default_latency_ms * self.factor,
                links=tuple(links),
            ),
            write_back_ms=topology.write_back_ms * self.factor,
        )

    def _config(self, config: Mapping[str, str]) -> dict[str, str]:
        """The configs of a file, with longer times.  Times that are no number stay."""
        return {
            name: text if number is None else str(number * self.factor)
            for name, text in config.items()
            for number in (whole_number(text) if name.endswith(".ms") else None,)
        }

    def set_on(self, stage: ScenarioStage) -> None:
        """Let the stage and its clients keep this pace."""
        stage.pace = self.factor
        stage.client_profile = self.client_profile
        stage.patience_ms = self.patience_ms


TENTH_OF_KAFKA: Final = Pace("fast", TENTH, 500)
"""The patience of `fast` is 50 ms."""
AS_KAFKA: Final = Pace("kafka", WHOLE, 1_000)
