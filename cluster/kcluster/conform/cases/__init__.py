"""The cases, one module per family of APIs; each has CASES, or cases_of(reference).

Owns: finding these modules.  Never: lists them by hand.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from kcluster.conform.case import Case
from kcluster.conform.references import Reference


def families(reference: Reference) -> dict[str, tuple[Case, ...]]:
    """Name of each module here -> its cases that can be asked of this release."""
    return {
        name: tuple(one for one in _cases(module, reference) if one.each_version(reference))
        for name, module in _modules(__path__, __name__).items()
    }


def is_secured(family: str) -> bool:
    """Whether the cases of a family are for the cluster with logins and an authorizer."""
    return getattr(_modules(__path__, __name__)[family], "SECURED", False)


def _cases(module: ModuleType, reference: Reference) -> tuple[Case, ...]:
    made: tuple[Case, ...] = (
        module.cases_of(reference) if hasattr(module, "cases_of") else module.CASES
    )
    return made


def _modules(paths: Iterable[str], package: str) -> dict[str, ModuleType]:
    names = sorted(found.name for found in pkgutil.iter_modules(paths))
    return {name: import_module(f"{package}.{name}") for name in names}
