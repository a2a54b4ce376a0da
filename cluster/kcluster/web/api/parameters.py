"""The parameters of the past, and the same past with other values of them.

Owns: these routes.  Never: plays anything itself (scenario/replaying.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from kcluster.scenario.parameter_difference import ParameterDifference
from kcluster.scenario.parameters import Parameter
from kcluster.scenario.replaying import Replays, parameters_in
from kcluster.web.call import ApiCall
from kcluster.web.routes import route

_Partition = Annotated[str, Meta(description="The partition, such as `orders-0`.")]


class ParametersWanted(Struct):
    """The partition whose past is asked for."""

    partition: _Partition


class ParameterList(Struct, frozen=True):
    """The parameters that the past can be played with other values of, with their values at its
    start."""

    parameters: list[Parameter]


class ReplayWanted(Struct):
    """The past, and the other values."""

    partition: _Partition
    values: Annotated[
        dict[str, int | str], Meta(description="Values by the names of their parameters.")
    ]
    at_ms: Annotated[
        int | None,
        Meta(description="The end of the past, on the cluster's clock; without it, now."),
    ] = None


class ReplayAnswer(Struct, frozen=True):
    """`difference`: what the values change, in one sentence; `facts`: the same as values, with
    times since the past began.  `assumptions`: the reasons why the played past differs from the
    real one, and what the values do not reach."""

    difference: str
    facts: ParameterDifference
    assumptions: tuple[str, ...]


@route(
    "GET",
    "/v1/clusters/<id>/parameters",
    query=ParametersWanted,
    answer=ParameterList,
    errors=(404, 409),
)
def list_parameters(call: ApiCall) -> ParameterList:
    """The parameters that the past of a partition can be played with other values of."""
    return ParameterList(parameters_in(call.held.source, call.query.partition))


@route(
    "POST",
    "/v1/clusters/<id>/parameters",
    body=ReplayWanted,
    answer=ReplayAnswer,
    errors=(404, 409, 422),
)
def replay_with_values(call: ApiCall) -> ReplayAnswer:
    """Play the past again in virtual time, from its start, with other values of parameters. It is
    played on after its end until producers write to the partition again, for a minute at most."""
    wanted, held = call.values(ReplayWanted), call.held
    replay = held.part(Replays, Replays).play(
        held.source, wanted.partition, wanted.at_ms, wanted.values
    )
    return ReplayAnswer(replay.difference.text, replay.difference, replay.assumptions)
