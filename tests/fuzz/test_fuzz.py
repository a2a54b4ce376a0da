"""Some seconds of the fuzzer in every run of the tests, and a longer run among the slow ones.

The seeds follow from the commit: the same commit plays the same, the next one plays something new.
What fails here is shown again by the line that is printed; put it into the corpus (`make fuzz`
does), repair it, and the corpus keeps it that way.
"""

from __future__ import annotations

import os
import ssl
import subprocess
from pathlib import Path
from random import Random

import pytest

from kcluster.drivers.tls import contexts
from kcluster.drivers.tls.contexts import ClientAuth
from kcluster.security.sasl.authenticator import SaslAuthenticator
from tests.fuzz import corpus
from tests.fuzz.__main__ import SHARES, Fuzzing
from tests.fuzz.episodes import Budget, Failure, packed, shrunk, unpacked
from tests.fuzz.targets import TARGETS
from tests.fuzz.targets.brokers import Brokers, Sent
from tests.fuzz.targets.logins import Logins
from tests.fuzz.targets.members import Members
from tests.fuzz.targets.tls import Tls

SHORT_S = 1.5
LONG_S = float(os.environ.get("KCLUSTER_FUZZ_SECONDS", "30"))
SEEDS = range(8)


def first_seed() -> int:
    """From the commit; 1 outside a repository."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    return int(asked.stdout[:7] or "1", 16)


@pytest.mark.timeout_s(300)
@pytest.mark.parametrize(
    "seconds", [SHORT_S, pytest.param(LONG_S, marks=pytest.mark.slow)], ids=["short", "long"]
)
@pytest.mark.parametrize("name", list(TARGETS))
def test_fuzz__nothing_is_found(name: str, seconds: float, tmp_path: Path) -> None:
    fuzzing = Fuzzing([name], tmp_path, first_seed() + round(seconds))
    fuzzing.run(seconds * SHARES[name])
    found = [f"python -m tests.fuzz --only {name} --seed {fuzzing.seeds[key]}: {key[1]}"
             for key in fuzzing.found]  # fmt: skip
    assert not found


@pytest.mark.parametrize("seed", SEEDS)
def test_fuzz__any_request_is_answered_or_refused_and_crashes_no_broker(seed: int) -> None:
    brokers = Brokers()
    failure = brokers.play(brokers.draw(Random(f"fixed/{seed}")))
    assert failure is None, failure.detail


@pytest.mark.parametrize("path", corpus.entries(), ids=lambda path: path.stem)
def test_corpus__what_was_found_once_is_repaired(path: Path) -> None:
    target = TARGETS[corpus.target_of(path)]()
    failure = target.play(corpus.read(path, target.step))
    assert failure is None, failure.detail


# ------------------------------------------------------------------------- the fuzzer itself


def test_fuzz__same_seed_same_steps() -> None:
    first, second = (Brokers().draw(Random("one/1")) for _ in range(2))
    assert first == second


def test_fuzz__shrinks_to_what_is_needed() -> None:
    def play(steps: object) -> Failure | None:
        assert isinstance(steps, list)
        return Failure("it") if {3, 40} <= set(steps) else None

    assert shrunk(list(range(100)), "it", play) == [3, 40]


def test_fuzz__a_broken_broker_is_found_shrunk_and_written_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kcluster.broker.handlers.metadata import describe_cluster
    from kcluster.broker.registry import SERVED_APIS
    from kcluster.protocol.apis import ApiKey

    def breaks(*_: object) -> object:
        raise ValueError("on purpose")

    assert describe_cluster is not None
    monkeypatch.setattr(SERVED_APIS[ApiKey.DESCRIBE_CLUSTER], "handler", breaks)
    fuzzing = Fuzzing(["brokers"], tmp_path, first=1)
    fuzzing.targets["brokers"] = brokers = Brokers(requests=20)
    while not fuzzing.found:
        fuzzing.episode(brokers)
    assert [what.split()[0] for _, what in fuzzing.found] == ["ValueError"]
    (entry,) = corpus.entries(tmp_path)
    sent = [step for step in corpus.read(entry, Brokers.step) if isinstance(step, Sent)]
    assert unpacked(sent[-1].bytes)[4:6] == b"\0\x3c"
    assert len(sent) <= 3


def test_logins__a_login_that_lets_strangers_in_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SaslAuthenticator, "_find_failure", lambda *_: None)
    monkeypatch.setattr(SaslAuthenticator, "is_complete", True)
    logins = Logins(requests=60)
    failure = logins.play(logins.draw(Random("one/1")))
    assert failure is not None
    assert failure.what == "came in"


def test_members__a_session_without_an_end_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SaslAuthenticator, "_is_expired", lambda *_: False)
    members = Members()
    failure = members.play(members.draw(Random("one/4")))
    assert failure is not None
    assert failure.what == "another's name"


def test_tls__a_listener_that_asks_for_no_certificate_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(contexts._MODES, ClientAuth.REQUIRED, ssl.CERT_OPTIONAL)
    tls = Tls()
    failure = tls.play(tls.draw(Random("one/6")))
    assert failure is not None
    assert failure.what == "came in"


def test_budget__a_step_that_takes_too_long_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.episodes.STEP_CPU_S", 0.0)
    budget = Budget()
    with budget:
        sum(range(1_000))
    assert budget.over is not None
    assert budget.over.what == "CPU"


def test_packed__is_short_and_loses_nothing() -> None:
    data = b"\1" + bytes(40_000) + b"\x10" * 15 + b"\0\1\1"
    assert unpacked(packed(data)) == data
    assert len(packed(data)) < 60
