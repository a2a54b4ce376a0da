"""What may be done to a cluster in a scenario, by name.  Importing this registers all of them."""

from cluster.scenario.actions import admin as admin
from cluster.scenario.actions import brokers as brokers
from cluster.scenario.actions import faults as faults
from cluster.scenario.actions import leaders as leaders
from cluster.scenario.actions import machines as machines
from cluster.scenario.actions import network as network
from cluster.scenario.actions import rules as rules
from cluster.scenario.actions import waiting as waiting
from cluster.scenario.actions.base import ACTIONS, Action, Stage

__all__ = ["ACTIONS", "Action", "Stage"]
