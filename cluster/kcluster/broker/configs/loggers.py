"""The levels of a broker's loggers, which IncrementalAlterConfigs may set.

Owns: the names of the loggers, the rules for changing levels.  Never: logs anything.  Levels last
as long as the broker's process.
Kafka: RuntimeLoggerManager, LoggingController; KIP-412.

Kafka's loggers are named after its classes; the list here has the loggers whose levels people
change, so that their tools work.  Levels have no effect: `kcluster up --trace-requests` and the
trace show more than loggers would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

ROOT: Final = "root"
LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_AT_START: Final = {ROOT: "INFO"}
LOGGERS: Final = (
    "kafka.controller", "kafka.coordinator.group", "kafka.coordinator.transaction",
    "kafka.log.LogManager", "kafka.network.RequestChannel$", "kafka.network.SocketServer",
    "kafka.request.logger", "kafka.server.BrokerServer", "kafka.server.KafkaApis",
    "kafka.server.ReplicaFetcherManager", "kafka.server.ReplicaFetcherThread",
    "kafka.server.ReplicaManager", "org.apache.kafka",
    "org.apache.kafka.clients.NetworkClient",
    "org.apache.kafka.controller.QuorumController",
    "org.apache.kafka.coordinator.group.GroupCoordinatorService",
    "org.apache.kafka.coordinator.group.GroupMetadataManager",
    "org.apache.kafka.image.loader.MetadataLoader",
    "org.apache.kafka.raft.KafkaRaftClient",
    "org.apache.kafka.server.ClientMetricsManager",
    "org.apache.kafka.server.quota.ClientQuotaManager",
    "org.apache.kafka.storage.internals.log.LogCleaner",
    "org.apache.kafka.storage.internals.log.UnifiedLog", ROOT, "state.change.logger",
)  # fmt: skip

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


class Refused(Struct, frozen=True):
    """A refused change of levels, with its error."""

    error: ErrorCode
    message: str | None = None


def levels(own: Mapping[str, str]) -> dict[str, str]:
    """The level of each logger; a logger without a level of its own has the root's."""
    known = {**_AT_START, **own}
    return {logger: known.get(logger, known[ROOT]) for logger in LOGGERS}


def change_levels(
    own: dict[str, str],
    changes: Iterable[m.IncrementalAlterConfigsRequest.AlterableConfig],
    validate_only: bool,
) -> Refused | None:
    """Apply all `changes`, or none of them, to `own`, the levels that are set.  Each change has a
    name, a value and an operation, as in IncrementalAlterConfigs."""
    after = dict(own)
    for change in changes:
        name, level, operation = change.name, change.value, change.config_operation
        if operation in (_APPEND, _SUBTRACT):
            problem = "a level is not a list: it can be set or deleted"
            return Refused(ErrorCode.INVALID_REQUEST, problem)
        if operation not in (_SET, _DELETE):
            return Refused(ErrorCode.INVALID_REQUEST, f"there is no operation {operation}")
        if name not in LOGGERS:
            return Refused(ErrorCode.INVALID_CONFIG, f"there is no logger {name}")
        if operation == _DELETE:
            if name == ROOT:
                problem = "the root logger's level cannot be deleted"
                return Refused(ErrorCode.INVALID_REQUEST, problem)
            after.pop(name, None)
        elif level not in LEVELS:
            problem = f"{level} is not a level; the levels are {', '.join(LEVELS)}"
            return Refused(ErrorCode.INVALID_CONFIG, problem)
        else:
            after[name] = level
    if not validate_only:
        own.clear()
        own.update(after)
    return None
