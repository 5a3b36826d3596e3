"""DatasetService: snapshots under names."""

from __future__ import annotations

from typing import Any

from trackway_common.callers import caller_of
from trackway_common.events import DatasetRegistered
from trackway_proto.v1 import dataset_service_pb2 as pb
from trackway_proto.v1.dataset_service_pb2_grpc import DatasetServiceServicer

from trackway_scheduler.domain.names import project_of
from trackway_scheduler.entrypoints.messages import dataset_message
from trackway_scheduler.entrypoints.paging import newest_first, page
from trackway_scheduler.shell.opening import Opening


class DatasetServicer(DatasetServiceServicer):
    """Registers through the active scheduler, answers from any."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def RegisterDataset(  # noqa: N802 - named by the .proto file
        self, request: pb.RegisterDatasetRequest, context: Any
    ) -> pb.Dataset:
        snapshot = await self._opening.parts.datasets.register(
            request.manifest,
            project=request.project,
            request_id=request.request_id,
            caller=caller_of(context),
            validate_only=request.validate_only,
        )
        return dataset_message(snapshot)

    async def GetDataset(  # noqa: N802 - named by the .proto file
        self, request: pb.GetDatasetRequest, context: Any
    ) -> pb.Dataset:
        snapshot = self._opening.parts.datasets.find(request.name)
        return dataset_message(snapshot, await self._opening.parts.datasets.manifest(snapshot))

    async def ListDatasets(  # noqa: N802 - named by the .proto file
        self, request: pb.ListDatasetsRequest, context: Any
    ) -> pb.ListDatasetsResponse:
        project = project_of(request.parent, "datasets")
        chosen = [
            snapshot
            for owner, datasets in self._opening.parts.records.datasets.items()
            for snapshots in datasets.values()
            for snapshot in snapshots
            if project in {None, owner}
        ]
        listed = page(chosen, _by_name, size=request.page_size, token=request.page_token, filters=(project or "-",))
        datasets = [dataset_message(snapshot) for snapshot in listed.items]
        return pb.ListDatasetsResponse(datasets=datasets, next_page_token=listed.next_token)


def _by_name(snapshot: DatasetRegistered) -> tuple[str, ...]:
    return (
        snapshot.project,
        snapshot.name,
        newest_first(snapshot.registered_at.isoformat(timespec="microseconds")),
        snapshot.manifest_digest,
    )
