"""What pytest loads: the plugin of kcluster, unless a module of the project hides the package.

Owns: the entry point.  Never: imports a cluster; is below kcluster, where a project's own
kcluster.py would keep pytest from finding it, with a traceback instead of a line.
Kafka: no counterpart.
"""

from __future__ import annotations

from importlib.util import find_spec

import pytest

import kcluster


def _is_hidden() -> bool:
    try:
        return find_spec("kcluster.testing.plugin") is None
    except ModuleNotFoundError:  # one of its parents is another module
        return True


IS_HIDDEN = _is_hidden()

if not IS_HIDDEN:
    pytest_plugins = ["kcluster.testing.plugin"]


def pytest_configure(config: pytest.Config) -> None:
    """Say why there are no fixtures, if so; the tests that need none run."""
    if IS_HIDDEN:
        text = (
            f"{kcluster.__file__} hides the package kcluster, whose fixtures and options are"
            " missing: rename it"
        )
        config.issue_config_time_warning(pytest.PytestConfigWarning(text), stacklevel=2)
