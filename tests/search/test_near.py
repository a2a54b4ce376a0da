"""Faults near moments of programs: lines of their own code, moments of their clients, chance."""

from __future__ import annotations

from collections import Counter

from kcluster.actions.brokers import KillBrokers, PauseBrokers
from kcluster.actions.stalls import StallProgram, apps_of
from kcluster.operations.conditions import MomentCondition
from kcluster.operations.moments import COMMIT, EXECUTION, NthMoment
from kcluster.scenario.language.model import Step
from kcluster.search.near import LifeCount, ProgramLife, draw_near, draw_plain

BUSY, RARE = "billing.py:10", "billing.py:31"
MAIL = "mail.py:7"
LIFE = ProgramLife(
    apps=("billing", "mail"),
    moments=((COMMIT, "billing", 9),),
    partitions=("orders-0",),
    groups=("billing",),
    lasts_ms=30_000,
    lines=(("billing", BUSY, 5_000), ("billing", RARE, 2), ("mail", MAIL, 40)),
)
DRAWN = [draw_near(LIFE, seed) for seed in range(400)]


def moment_of(step: Step) -> NthMoment | None:
    when = step.trigger.when
    return when.moment if isinstance(when, MomentCondition) else None


def faults(drawn: list[tuple[Step, ...]]) -> list[Step]:
    return [step for steps in drawn for step in steps if not isinstance(step.action, StallProgram)]


def test_draw_near__is_the_same_for_the_same_seed() -> None:
    assert draw_near(LIFE, 7) == DRAWN[7]
    assert len(set(map(str, DRAWN))) > 300


def test_draw_near__a_line_that_is_executed_twice_is_hit_as_often_as_one_of_a_loop() -> None:
    moments = filter(None, map(moment_of, faults(DRAWN)))
    hit = Counter(moment.of for moment in moments if moment.kind == EXECUTION)
    assert set(hit) == {BUSY, RARE, MAIL}
    assert hit[RARE] > 0.5 * hit[BUSY]


def test_draw_near__an_app_dies_at_each_of_its_lines_in_turn() -> None:
    died = [(apps_of(step.action), moment_of(step)) for (step,) in DRAWN[1:6:2]]
    at = [(apps, moment.of) for apps, moment in died if moment is not None]
    assert at == [(("billing",), BUSY), (("billing",), RARE), (("mail",), MAIL)]


def test_draw_near__the_app_that_dies_is_the_one_that_executes_the_line() -> None:
    at_lines = 0
    for step in faults(DRAWN):
        moment = moment_of(step)
        if moment is not None and moment.kind == EXECUTION and apps_of(step.action):
            at_lines += 1
            assert apps_of(step.action) == (moment.of.partition(".")[0],)
    assert at_lines > 50


def test_draw_near__some_apps_are_down_or_stand_still_for_longer_than_a_session() -> None:
    longest_ms: dict[type, int] = {}
    for step in faults(DRAWN):
        if apps_of(step.action) and step.options.for_ is not None:
            kind = type(step.action)
            longest_ms[kind] = max(step.options.for_.high_ms, longest_ms.get(kind, 0))
    assert longest_ms == {KillBrokers: 20_000, PauseBrokers: 20_000}


def test_draw_near__the_number_of_a_moment_is_one_that_came() -> None:
    most = {RARE: 2, "billing": 9}
    for moment in filter(None, map(moment_of, faults(DRAWN))):
        assert 1 <= moment.number <= most.get(moment.of, 5_000)


def test_draw_plain__faults_are_the_same_at_any_time() -> None:
    drawn = [draw_plain(LIFE, seed) for seed in range(400)]
    times = []
    for step in faults(drawn):
        assert step.trigger.at is not None
        times.append(step.trigger.at.low_ms)
    assert 0 <= min(times) < 1_000
    assert 29_000 < max(times) <= LIFE.lasts_ms
    assert any(isinstance(step.action, KillBrokers) for step in faults(drawn))
    for steps in drawn:
        begun = [step.trigger.at.low_ms for step in steps if step.trigger.at is not None]
        assert begun == sorted(begun)


def test_life_count__counts_lines_by_app() -> None:
    count = LifeCount(lambda: 5)
    for line in (RARE, BUSY, BUSY):
        assert not count.add_line("billing", line)
    count.add_line("mail", MAIL)
    count.add_line("", "test_mail.py:9")
    life = count.life(["billing"], [])
    assert life.lines == (("billing", BUSY, 2), ("billing", RARE, 1))
    assert life.places == (("billing", BUSY), ("billing", RARE), ("", "test_mail.py:9"))
