"""Random schedules of faults, each a scenario of a minute that both grounds can play.

Owns: what is drawn, from a seed.  Never: plays one.
Kafka: Trogdor's fault specs; Jepsen's nemesis.

Faults of one broker do not overlap, and every choice is in the file, so that both grounds do the
same at the same time.
"""

from __future__ import annotations

from random import Random
from typing import Final

from kcluster.scenario.language.scenario import Scenario

DURATION_MS: Final = 6_000
"""In the file; with a tenth of Kafka's times it lasts a minute."""
BROKERS: Final = (1, 2, 3)
FIRST_MS: Final = 500
_SETTINGS: Final = (
    ("all", 2, False, "safe"),
    ("all", 2, True, "unclean elections"),
    ("all", 1, False, "min.insync.replicas=1"),
    ("1", 1, False, "acks=1"),
)
"""(acks, min.insync.replicas, unclean.leader.election.enable, name)."""


def schedule(seed: int) -> Scenario:
    """The schedule of a seed."""
    return Scenario.parse(schedule_text(seed), f"random_{seed}.yaml")


def settings_name(seed: int) -> str:
    """The settings of a seed's schedule: `acks=1`, `safe, idempotent`."""
    _, _, _, name, idempotent = _settings(Random(f"{seed}/certified"))
    return f"{name}, idempotent" if idempotent else name


def _settings(rng: Random) -> tuple[str, int, bool, str, bool]:
    """As one of _SETTINGS, and whether the producer is idempotent."""
    acks, min_insync, unclean, name = rng.choice(_SETTINGS)
    return acks, min_insync, unclean, name, acks == "all" and rng.random() < 0.5


def schedule_text(seed: int) -> str:
    """The scenario file of a seed's schedule."""
    rng = Random(f"{seed}/certified")
    acks, min_insync, unclean, name, idempotent = _settings(rng)
    flag = {False: "false", True: "true"}
    config = f"min.insync.replicas: {min_insync}, unclean.leader.election.enable: {flag[unclean]}"
    steps = "".join(f"  - {step}\n" for step in _steps(rng))
    return f"""\
# Drawn by seed {seed}: {name}.
topology:
  brokers: 3
  profile: fast
  topics:
    orders: {{assignment: [[1, 2, 3], [2, 3, 1], [3, 1, 2]], config: {{{config}}}}}
workload:
  producers:
    {{topic: orders, name: shop, rate: 100/s, acks: {acks}, idempotent: {flag[idempotent]}}}
  consumers: {{topics: orders, name: reader, group: billing}}
duration: {DURATION_MS}ms
steps:
{steps}"""


def _steps(rng: Random) -> list[str]:
    """The steps, in the order of their times."""
    free_ms = dict.fromkeys(BROKERS, FIRST_MS)
    """The time from which a broker may have its next fault."""
    found = []
    at_ms = FIRST_MS
    while at_ms < DURATION_MS - 1_500:
        ready = [broker for broker in BROKERS if free_ms[broker] <= at_ms]
        if ready:
            broker, lasts_ms = rng.choice(ready), rng.randrange(100, 1_000, 50)
            free_ms[broker] = at_ms + lasts_ms + 1_000
            found.append(_step(rng, at_ms, broker, lasts_ms))
        at_ms += rng.randrange(200, 1_200, 50)
    return found


def _step(rng: Random, at_ms: int, broker: int, lasts_ms: int) -> str:
    others = [each for each in BROKERS if each != broker]
    number = rng.randrange(3)
    kind = rng.choice(("kill", "kill", "pause", "restart", "cut", "cut_one_way", "lonely", "move"))
    lasts = f"for: {lasts_ms}ms"
    match kind:
        case "kill" | "pause":
            action = f"{kind}: {broker}, {lasts}"
        case "restart":
            action = f"restart: {{brokers: {broker}, down: {lasts_ms}ms}}"
        case "cut":
            rest = f"[{others[0]}, {others[1]}, controller]"
            action = f"isolate: {{nodes: {broker}, others: {rest}}}, {lasts}"
        case "cut_one_way":
            action = f"isolate: {{nodes: {broker}, others: {others[0]}, one_way: true}}, {lasts}"
        case "lonely":
            action = f"isolate: {{nodes: {broker}, others: controller}}, {lasts}"
        case _:
            action = f"move: {{partition: orders-{number}, to: any followers(orders-{number})}}"
    return f"{{at: {at_ms}ms, {action}}}"
