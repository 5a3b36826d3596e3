"""EvaluationService: what is known of evaluations, as read back from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from trackway_common.codec import to_message
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.rpc import Servable
from trackway_proto.v1 import evaluation_service_pb2, evaluation_service_pb2_grpc, vocabulary_pb2

from trackway_evaluator.domain.state import Evaluation, RunEvaluations
from trackway_evaluator.entrypoints.names import (
    Scope,
    decode_token,
    encode_token,
    page_size,
    parse_evaluation_name,
    parse_parent,
)

States = Callable[[], Mapping[str, RunEvaluations]]
"""Raises Unavailable while the log is still being read."""


class EvaluationApi(evaluation_service_pb2_grpc.EvaluationServiceServicer):
    """Reads the folded evaluations."""

    def __init__(self, states: States) -> None:
        self._states = states

    async def GetEvaluation(  # noqa: N802 - named by the .proto file
        self, request: evaluation_service_pb2.GetEvaluationRequest, context: Any
    ) -> evaluation_service_pb2.Evaluation:
        project, wanted = parse_evaluation_name(request.name)
        found = [one for one in self._evaluations(Scope(project=project)) if one[1].evaluation_id.startswith(wanted)]
        exact = [one for one in found if one[1].evaluation_id == wanted]
        if len(chosen := exact or found) > 1:
            message = f"{len(chosen)} evaluations begin with {wanted!r}; write more of the id"
            raise CommandRejected(message, reason="AMBIGUOUS")
        if not chosen:
            raise NotFound(f"there is no evaluation {request.name!r}; `trackway evaluation list` shows them")
        return _message(*chosen[0])

    async def ListEvaluations(  # noqa: N802 - named by the .proto file
        self, request: evaluation_service_pb2.ListEvaluationsRequest, context: Any
    ) -> evaluation_service_pb2.ListEvaluationsResponse:
        size, after = page_size(request.page_size), decode_token(request.page_token)
        newest_first = sorted(self._evaluations(parse_parent(request.parent)), key=_place, reverse=True)
        left = [one for one in newest_first if after is None or _place(one) < after]
        page = left[:size]
        return evaluation_service_pb2.ListEvaluationsResponse(
            evaluations=[_message(*one) for one in page],
            next_page_token=encode_token(_place(page[-1])) if len(left) > size else "",
        )

    def _evaluations(self, scope: Scope) -> Iterator[tuple[str, Evaluation]]:
        for state in self._states().values():
            if scope.run_id and not state.run_id.startswith(scope.run_id):
                continue
            for evaluation in state.evaluations:
                if scope.project in {"", evaluation.project}:
                    yield state.run_id, evaluation


def servable(api: EvaluationApi) -> Servable:
    """The service as a server registers it."""
    return Servable(
        evaluation_service_pb2_grpc.add_EvaluationServiceServicer_to_server,
        api,
        "trackway_proto.v1.EvaluationService",
    )


def _place(one: tuple[str, Evaluation]) -> tuple[int, str]:
    return int(one[1].requested_at.timestamp() * 1000), one[1].evaluation_id


def _message(run_id: str, evaluation: Evaluation) -> evaluation_service_pb2.Evaluation:
    return evaluation_service_pb2.Evaluation(
        name=f"projects/{evaluation.project}/evaluations/{evaluation.evaluation_id}",
        evaluation_id=evaluation.evaluation_id,
        run_id=run_id,
        phase=vocabulary_pb2.EvaluationPhase.Value(f"EVALUATION_PHASE_{evaluation.phase.value}"),
        pack=to_message(evaluation.pack),
        checkpoint=to_message(evaluation.checkpoint),
        evaluation_attempt=evaluation.attempt,
        failures=[to_message(failure) for failure in evaluation.failures],
        result=None if evaluation.result is None else to_message(evaluation.result),
        requested_at=_timestamp(evaluation.requested_at),
    )


def _timestamp(moment: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp
