"""Channels to the services: the scheduler's endpoint is given, the others' are asked of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc
from trackway_common.errors import Unavailable
from trackway_proto.v1.directory_service_pb2 import ListServicesRequest, ServiceEndpoint
from trackway_proto.v1.directory_service_pb2_grpc import DirectoryServiceStub

from trackway.client.calls import QUICK_S, in_our_terms, metadata
from trackway.client.channels import open_channel

SCHEDULER = "scheduler"
TRAINER_AGENT = "trainer-agent"
CHECKPOINTER = "checkpointer"
EVALUATOR = "evaluator"
OBSERVER = "observer"


class Connections:
    """Opens each channel once; what it knows of the services is asked anew after an outage."""

    def __init__(self, find_scheduler: Callable[[], str], tls: grpc.ChannelCredentials | None) -> None:
        self._find_scheduler = find_scheduler
        self._tls = tls
        self._lock = threading.Lock()
        self._channels: dict[str, grpc.Channel] = {}
        self._scheduler = ""
        self._directory: tuple[ServiceEndpoint, ...] | None = None

    def channel(self, service: str) -> grpc.Channel:
        """Channel to the service's most recently heard instance, or to the scheduler's endpoint without one.

        Raises:
            CommandRejected: there is no endpoint to start from.
        """
        return self.channel_at(self.endpoints(service)[0])

    def channel_at(self, endpoint: str) -> grpc.Channel:
        """The one channel of an endpoint."""
        with self._lock:
            if endpoint not in self._channels:
                self._channels[endpoint] = open_channel(endpoint, self._tls)
            return self._channels[endpoint]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Run calls; when a service proves unavailable, endpoints are looked up again next time."""
        try:
            yield
        except Unavailable:
            self.forget()
            raise

    def endpoints(self, service: str) -> tuple[str, ...]:
        """Endpoints of a service's instances, the most recently heard first; never empty."""
        scheduler = self._scheduler_endpoint()
        if service == SCHEDULER:
            return (scheduler,)
        instances = sorted((s for s in self._listed() if s.service == service), key=lambda s: s.age_seconds)
        return tuple(dict.fromkeys(s.endpoint for s in instances)) or (scheduler,)

    def forget(self) -> None:
        """Look endpoints up again at the next call; a restarted service may have another port."""
        self._scheduler = ""
        self._directory = None

    def close(self) -> None:
        """Close every channel; calls that still run on them are cancelled."""
        with self._lock:
            for channel in self._channels.values():
                channel.close()
            self._channels.clear()

    def _scheduler_endpoint(self) -> str:
        if not self._scheduler:
            self._scheduler = self._find_scheduler()
        return self._scheduler

    def _listed(self) -> tuple[ServiceEndpoint, ...]:
        listed = self._directory
        if listed is None:
            with self.watched():
                listed = _ask_directory(self.channel(SCHEDULER))
            self._directory = listed
        return listed


def _ask_directory(channel: grpc.Channel) -> tuple[ServiceEndpoint, ...]:
    """Services that the scheduler knows; none where one process serves them all and no directory."""
    with in_our_terms(QUICK_S):
        try:
            request = ListServicesRequest()
            return tuple(
                DirectoryServiceStub(channel).ListServices(request, timeout=QUICK_S, metadata=metadata()).services
            )
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return ()
            raise
