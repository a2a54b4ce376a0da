"""UpdateFeatures (API 57, v0-2): raise or lower a feature of the cluster; the controller decides.

Owns: the shape of the answer in each version.  Never: checks an update
(controller/configs/features.py).
Kafka: KafkaApis (forwarded), ControllerApis.handleUpdateFeatures; KIP-584, KIP-778, KIP-1022.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.handlers.forwarding import enveloped
from kcluster.broker.registry import PARKED, Parked, handles
from kcluster.contract import Request
from kcluster.metadata.records import RequestDenied
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.security.refusals import DENIED

RESULTS_UNTIL: Final = 1
"""The last version whose answer names each feature on success."""


@handles(ApiKey.UPDATE_FEATURES, versions=(0, 2))
def update_features(broker: Broker, request: Request, now_ms: int) -> Parked:
    """Set levels of features.

    Behaviour:
    - as the controller answers; REQUEST_TIMED_OUT after request.timeout.ms: 4.3.1 ignores the
      request's own timeout.
    Versions:
    - v1: upgrade types and validate_only (KIP-778)
    - v2: no results by feature
    """
    body: m.UpdateFeaturesRequest = request.body

    def on_answer(answer: m.UpdateFeaturesResponse | RequestDenied | None, now_ms: int) -> None:
        if answer is None:
            error = ErrorCode.REQUEST_TIMED_OUT
            answer = m.UpdateFeaturesResponse(error_code=error, error_message=error.text)
        elif isinstance(answer, RequestDenied):
            error = answer.error
            answer = m.UpdateFeaturesResponse(error_code=error, error_message=DENIED[error])
        elif answer.error_code == ErrorCode.NONE and request.api_version <= RESULTS_UNTIL:
            answer.results = [
                m.UpdateFeaturesResponse.UpdatableFeatureResult(
                    feature=update.feature, error_message=ErrorCode.NONE.name
                )
                for update in body.feature_updates
            ]
        broker.reply(request, answer)

    timeout_ms = broker.config.request_timeout_ms
    broker.ask_controller(enveloped(broker, request, body), on_answer, timeout_ms, now_ms)
    return PARKED
