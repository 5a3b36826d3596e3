"""All services of the scheduler, as the server takes them."""

from __future__ import annotations

from trackway_common.rpc import Servable
from trackway_proto.v1 import (
    blob_service_pb2_grpc,
    dataset_service_pb2_grpc,
    directory_service_pb2_grpc,
    pool_service_pb2_grpc,
    run_service_pb2_grpc,
)

from trackway_scheduler.entrypoints.blob_service import BlobServicer
from trackway_scheduler.entrypoints.dataset_service import DatasetServicer
from trackway_scheduler.entrypoints.directory_service import DirectoryServicer
from trackway_scheduler.entrypoints.pool_service import PoolServicer
from trackway_scheduler.entrypoints.run_service import RunServicer
from trackway_scheduler.shell.opening import Opening

_PACKAGE = "trackway_proto.v1"


def servables(opening: Opening) -> tuple[Servable, ...]:
    """The services; each answers Unavailable until the opening is open."""
    return (
        Servable(run_service_pb2_grpc.add_RunServiceServicer_to_server, RunServicer(opening), f"{_PACKAGE}.RunService"),
        Servable(
            blob_service_pb2_grpc.add_BlobServiceServicer_to_server, BlobServicer(opening), f"{_PACKAGE}.BlobService"
        ),
        Servable(
            dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server,
            DatasetServicer(opening),
            f"{_PACKAGE}.DatasetService",
        ),
        Servable(
            pool_service_pb2_grpc.add_PoolServiceServicer_to_server, PoolServicer(opening), f"{_PACKAGE}.PoolService"
        ),
        Servable(
            directory_service_pb2_grpc.add_DirectoryServiceServicer_to_server,
            DirectoryServicer(opening),
            f"{_PACKAGE}.DirectoryService",
        ),
    )
