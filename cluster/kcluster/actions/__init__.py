"""The actions on a running cluster; importing this package registers all of them."""

from importlib import import_module
from pkgutil import iter_modules

from kcluster.actions.base import ACTIONS, Action, made

__all__ = ["ACTIONS", "Action", "made"]

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
