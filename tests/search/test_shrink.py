"""Shrinking by any test: what is not needed goes, what is needed stays."""

from __future__ import annotations

from kcluster.actions.stalls import StallProgram
from kcluster.scenario.language.model import Step
from kcluster.scenario.language.scenario import Scenario
from kcluster.search.shrink import Shrinker
from kcluster.search.words import needs_text

MANY = """\
topology: {brokers: 3, topics: {orders: {}}}
workload:
  producers:
    - {topic: orders, name: shop, rate: 100/s}
    - {topic: orders, name: desk, rate: 5/s}
  consumers: {topics: orders, name: reader, group: readers, members: 3}
duration: 60s
steps:
  - {at: 1s, kill: 1, for: 1s}
  - {at: 2100ms, pause: 2, for: 1234ms}
  - {at: 3s, kill: 3, for: 1s}
  - {at: 4017ms, stop: 1, for: 2s}
  - {at: 5s, pause: 3, for: 1s}
  - {at: 20s, kill: 2, for: 1s}
"""


def verbs(scenario: Scenario) -> list[str]:
    return [f"{step.verb} {step.action.written()}" for step in scenario.steps]


def test_shrink__only_the_needed_steps_stay() -> None:
    def shows(scenario: Scenario) -> bool:
        return {"pause 2", "stop 1"} <= {*verbs(scenario)}

    shrunk = Shrinker(Scenario.parse(MANY), shows).run()
    assert verbs(shrunk.scenario) == ["pause 2", "stop 1"]
    assert shrunk.is_minimal


def test_shrink__clients_records_and_time_go_too_and_numbers_become_round() -> None:
    shrunk = Shrinker(Scenario.parse(MANY), lambda scenario: "stop 1" in verbs(scenario)).run()
    scenario = shrunk.scenario
    (step,) = scenario.steps
    assert (str(step.trigger.at), str(step.options.for_)) == ("5s", "5s")
    assert scenario.workload.consumers == ()
    (producer,) = scenario.workload.producers
    assert producer.rate_per_s <= 10
    assert scenario.duration_ms <= 10_000


def test_shrink__what_needs_everything_stays_as_it_is() -> None:
    scenario = Scenario.parse(MANY)
    shrunk = Shrinker(scenario, lambda candidate: False).run()
    assert shrunk.scenario == scenario
    assert shrunk.is_minimal


def test_shrink__a_failure_without_any_step_is_found_to_need_none() -> None:
    shrunk = Shrinker(Scenario.parse(MANY), lambda scenario: True).run()
    assert shrunk.scenario.steps == ()
    assert shrunk.scenario.duration_ms == 1_000


PLACES = (("mail", "mail.py:3"), ("billing", "billing.py:7"), ("billing", "billing.py:8"))


def stalled_at(only: str) -> Step:
    """The step that is left of a program whose threads race at one line."""

    def shows(candidate: Scenario) -> bool:
        stalls = [step.action for step in candidate.steps if isinstance(step.action, StallProgram)]
        return any(stall.line in (None, only) for stall in stalls)

    stall = Step("stall", StallProgram("billing", 0.3, 5))
    scenario = Scenario("races", "", Scenario.parse(MANY).topology, steps=(stall,))
    (left,) = Shrinker(scenario, shows, places=PLACES).run().scenario.steps
    return left


def test_shrink__stalls_at_any_line_become_stalls_at_the_one_that_is_needed() -> None:
    assert needs_text([stalled_at("billing.py:8")], True) == (
        "It needs one step: stall billing at billing.py:8 (a thread stands still there each time,"
        " for up to 5ms). Without this step it does not happen."
    )


def test_shrink__stalls_stay_at_any_line_if_no_line_of_their_program_is_enough() -> None:
    assert needs_text([stalled_at("mail.py:3")], True) == (
        "It needs one step: stall billing at any line (a thread stands still there at 30% of the"
        " times, for up to 5ms). Without this step it does not happen."
    )


def test_shrink__ends_when_the_tries_are_used_up_and_does_not_claim_to_be_minimal() -> None:
    shrunk = Shrinker(Scenario.parse(MANY), lambda scenario: len(scenario.steps) > 1, 3).run()
    assert shrunk.tries == 3
    assert not shrunk.is_minimal
