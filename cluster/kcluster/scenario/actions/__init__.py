"""The actions of scenarios.  Importing this package registers all of them."""

from kcluster.scenario.actions import admin as admin
from kcluster.scenario.actions import brokers as brokers
from kcluster.scenario.actions import faults as faults
from kcluster.scenario.actions import leaders as leaders
from kcluster.scenario.actions import machines as machines
from kcluster.scenario.actions import network as network
from kcluster.scenario.actions import rules as rules
from kcluster.scenario.actions import waiting as waiting
from kcluster.scenario.actions.base import ACTIONS, Action

__all__ = ["ACTIONS", "Action"]
