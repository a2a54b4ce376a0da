"""The replicas of a partition, and any moment of the past.

Owns: these routes.  Never: reads a log itself (operations/logs.py, runs/moment.py).
Kafka: kafka-dump-log on each broker, with kafka-topics --describe beside it.
"""

from __future__ import annotations

from kcluster.operations.errors import ClusterError
from kcluster.operations.logs import PartitionLogs
from kcluster.operations.names import partition_in
from kcluster.web.call import ApiCall
from kcluster.web.problems import not_found
from kcluster.web.routes import route


@route("GET", "/v1/clusters/<id>/replicas/<partition>", answer=PartitionLogs, errors=(404, 409))
def show_replicas(call: ApiCall) -> PartitionLogs:
    """The log of each replica of a partition, such as orders-0: where it ends, its leader epochs,
    how it stands beside the leader's."""
    cluster = call.held.cluster
    try:
        return cluster.logs(*partition_in(call.named["partition"]))
    except ClusterError as error:
        raise not_found(str(error)) from None
