"""The hash seed of a session with tests in virtual time.

Owns: starting pytest again with PYTHONHASHSEED, and the message about it.  Never: runs a test.
Kafka: no counterpart.

The order of a set of strings differs from process to process, unless PYTHONHASHSEED is set; so one
seed of a test would give different runs.  It can be set only when a process starts.  The first
session that finds a test in virtual time starts again after its collection, and notes that in
pytest's cache; later sessions start again before it.  Workers of xdist get it from their
controller.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final, NoReturn

import pytest

from kcluster.testing.items import HASH_SEED_INI, KAFKA, is_virtual
from kcluster.world.environment import HASH_SEED, STARTED_AGAIN, start_again

_CACHED: Final = "kcluster/has_tests_in_virtual_time"
_WORKER: Final = "PYTEST_XDIST_WORKER"
_DEBUGGERS: Final = ("pydevd", "debugpy")
_OPTIONS: Final = ("--kcluster-clock", "--kcluster-seed", "--kcluster-seeds")


def start_again_early(config: pytest.Config) -> None:
    """Start again if an earlier session, or an option, shows that the hash seed will be needed."""
    if is_expected(config):
        _start_again(config)


def start_again_after(session: pytest.Session) -> None:
    """Start again if a test in virtual time was collected."""
    config, items = session.config, session.items
    if not _note(config, items) or config.getoption("collectonly"):
        return
    if _may_start_again(config):
        reporter = config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None:
            seed = config.getini(HASH_SEED_INI)
            reporter.write_line(f"kcluster: pytest starts again with {HASH_SEED}={seed}")
    _start_again(config)


def give_to_workers(config: pytest.Config) -> None:
    """Let the workers of xdist start with the hash seed."""
    if config.getini(HASH_SEED_INI) and HASH_SEED not in os.environ and is_expected(config):
        os.environ[HASH_SEED] = config.getini(HASH_SEED_INI)


def header(config: pytest.Config) -> str | None:
    """The line about the hash seed at the beginning of a session."""
    if os.environ.get(STARTED_AGAIN):
        return f"kcluster: {HASH_SEED}={os.environ.get(HASH_SEED)}, for tests in virtual time"
    return None


def is_expected(config: pytest.Config) -> bool:
    """Whether this session will have tests in virtual time, judging by what is known before the
    collection."""
    if any(config.getoption(option) not in (None, "live", KAFKA) for option in _OPTIONS):
        return True
    cache = getattr(config, "cache", None)
    return bool(cache is not None and cache.get(_CACHED, False))


def _note(config: pytest.Config, items: Iterable[pytest.Item]) -> bool:
    found = any(is_virtual(item) for item in items)
    cache = getattr(config, "cache", None)
    if found and cache is not None and not cache.get(_CACHED, False):
        cache.set(_CACHED, True)
    return found


def _start_again(config: pytest.Config) -> None:
    if _may_start_again(config):
        _execute(config)


def _may_start_again(config: pytest.Config) -> bool:
    """Whether this process runs only pytest, and no hash seed was chosen for it."""
    program = os.path.basename(sys.argv[0])
    is_pytest = program in ("pytest", "py.test") or sys.argv[0].endswith(
        os.path.join("pytest", "__main__.py")
    )
    return (
        bool(config.getini(HASH_SEED_INI))
        and HASH_SEED not in os.environ
        and STARTED_AGAIN not in os.environ
        and _WORKER not in os.environ
        and os.name == "posix"
        and is_pytest
        and list(map(str, config.invocation_params.args)) == sys.argv[1:]
        and not any(name in sys.modules for name in _DEBUGGERS)
    )


def _execute(config: pytest.Config) -> NoReturn:
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()  # the new process writes to this one's output
    sys.stdout.flush()
    sys.stderr.flush()
    start_again(config.getini(HASH_SEED_INI))
