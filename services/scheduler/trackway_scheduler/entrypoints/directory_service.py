"""DirectoryService: where the other services are."""

from __future__ import annotations

from typing import Any

from trackway_proto.v1 import directory_service_pb2 as pb
from trackway_proto.v1.directory_service_pb2_grpc import DirectoryServiceServicer

from trackway_scheduler.shell.opening import Opening


class DirectoryServicer(DirectoryServiceServicer):
    """Answers from heartbeats."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def ListServices(  # noqa: N802 - named by the .proto file
        self, request: pb.ListServicesRequest, context: Any
    ) -> pb.ListServicesResponse:
        return pb.ListServicesResponse(
            services=[
                pb.ServiceEndpoint(
                    service=heartbeat.service,
                    instance=heartbeat.instance,
                    endpoint=heartbeat.endpoint,
                    version=heartbeat.version,
                    age_seconds=age_s,
                )
                for heartbeat, age_s in self._opening.parts.fleet.services()
            ]
        )
