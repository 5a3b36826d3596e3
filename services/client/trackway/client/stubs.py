"""The services' stubs, each on the channel that its service has at the time."""

from __future__ import annotations

from trackway_proto.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from trackway_proto.v1.dataset_service_pb2_grpc import DatasetServiceStub
from trackway_proto.v1.evaluation_service_pb2_grpc import EvaluationServiceStub
from trackway_proto.v1.history_service_pb2_grpc import HistoryServiceStub
from trackway_proto.v1.pool_service_pb2_grpc import PoolServiceStub
from trackway_proto.v1.run_service_pb2_grpc import RunServiceStub

from trackway.client.connections import CHECKPOINTER, EVALUATOR, OBSERVER, SCHEDULER, Connections


class Stubs:
    """Who answers what."""

    def __init__(self, services: Connections) -> None:
        self._services = services

    @property
    def runs(self) -> RunServiceStub:
        return RunServiceStub(self._services.channel(SCHEDULER))

    @property
    def datasets(self) -> DatasetServiceStub:
        return DatasetServiceStub(self._services.channel(SCHEDULER))

    @property
    def pools(self) -> PoolServiceStub:
        return PoolServiceStub(self._services.channel(SCHEDULER))

    @property
    def history(self) -> HistoryServiceStub:
        return HistoryServiceStub(self._services.channel(OBSERVER))

    @property
    def checkpoints(self) -> CheckpointServiceStub:
        return CheckpointServiceStub(self._services.channel(CHECKPOINTER))

    @property
    def evaluations(self) -> EvaluationServiceStub:
        return EvaluationServiceStub(self._services.channel(EVALUATOR))
