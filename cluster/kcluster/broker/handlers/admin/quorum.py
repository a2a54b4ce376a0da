"""DescribeQuorum 55 (v0-2), AddRaftVoter 80 (v0-1), RemoveRaftVoter 81 (v0), UnregisterController
94 (v0): passed on to the controller.

Owns: the answer when the controller does not answer in time.  Never: knows the quorum.
Kafka: KafkaApis.forwardToController; KIP-595, KIP-853, KIP-1312.
Versions:
- DescribeQuorum v1: times of fetches (KIP-836)
- DescribeQuorum v2: directories, endpoints and messages (KIP-853)
- AddRaftVoter v1: ack_when_committed
- RemoveRaftVoter v0: KIP-853
- UnregisterController v0: KIP-1312
"""

from __future__ import annotations

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.forwarding import forward
from kcluster.broker.registry import Answer, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode


@handles(ApiKey.DESCRIBE_QUORUM, versions=(0, 2))
def describe_quorum(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Leader, epoch and replicas of the metadata log."""
    return forward(broker, request, broker.config.request_timeout_ms, _quorum_timed_out, now_ms)


@handles(ApiKey.ADD_RAFT_VOTER, versions=(0, 1))
def add_voter(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Add a controller to the voters."""
    return forward(broker, request, broker.config.request_timeout_ms, _add_timed_out, now_ms)


@handles(ApiKey.REMOVE_RAFT_VOTER, versions=(0, 0))
def remove_voter(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Remove a controller from the voters."""
    return forward(broker, request, broker.config.request_timeout_ms, _remove_timed_out, now_ms)


@handles(ApiKey.UNREGISTER_CONTROLLER, versions=(0, 0))
def unregister_controller(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Forget a controller that will not return."""
    timeout_ms = broker.config.request_timeout_ms
    return forward(broker, request, timeout_ms, _unregister_timed_out, now_ms)


def _quorum_timed_out(_request: m.DescribeQuorumRequest) -> m.DescribeQuorumResponse:
    error = ErrorCode.REQUEST_TIMED_OUT
    return m.DescribeQuorumResponse(error_code=error, error_message=error.text)


def _add_timed_out(_request: m.AddRaftVoterRequest) -> m.AddRaftVoterResponse:
    error = ErrorCode.REQUEST_TIMED_OUT
    return m.AddRaftVoterResponse(error_code=error, error_message=error.text)


def _remove_timed_out(_request: m.RemoveRaftVoterRequest) -> m.RemoveRaftVoterResponse:
    error = ErrorCode.REQUEST_TIMED_OUT
    return m.RemoveRaftVoterResponse(error_code=error, error_message=error.text)


def _unregister_timed_out(
    _request: m.UnregisterControllerRequest,
) -> m.UnregisterControllerResponse:
    error = ErrorCode.REQUEST_TIMED_OUT
    return m.UnregisterControllerResponse(error_code=error, error_message=error.text)
