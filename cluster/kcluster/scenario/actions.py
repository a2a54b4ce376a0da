"""The actions of scenario files: actions on a cluster, and random faults.

Owns: the import that registers all of them.  Never: defines one.
Kafka: Trogdor's FaultSpec and TaskSpec.
"""

from kcluster.actions import ACTIONS, Action
from kcluster.scenario import random_faults as random_faults

__all__ = ["ACTIONS", "Action"]
