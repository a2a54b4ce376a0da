"""What can be done to a running cluster; importing this package registers every action."""

from kcluster.actions import admin as admin
from kcluster.actions import brokers as brokers
from kcluster.actions import leaders as leaders
from kcluster.actions import machines as machines
from kcluster.actions import network as network
from kcluster.actions import rules as rules
from kcluster.actions import waiting as waiting
from kcluster.actions.base import ACTIONS, Action

__all__ = ["ACTIONS", "Action"]
