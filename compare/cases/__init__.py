"""The cases, one module per family of APIs; each has CASES.

Owns: finding these modules.  Never: lists them by hand.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

from compare.case import Case


def families() -> dict[str, tuple[Case, ...]]:
    """Name of each module here -> its cases."""
    return {name: tuple(module.CASES) for name, module in _modules(__path__, __name__).items()}


def _modules(paths: Any, package: str) -> dict[str, Any]:
    names = sorted(found.name for found in pkgutil.iter_modules(paths))
    return {name: import_module(f"{package}.{name}") for name in names}
