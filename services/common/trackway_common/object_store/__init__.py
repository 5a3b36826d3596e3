"""Immutable objects under relative keys: the port, the local disk, memory, and blobs by digest."""

from trackway_common.object_store.blobs import BlobStore
from trackway_common.object_store.local import LocalObjectStore
from trackway_common.object_store.memory import InMemoryObjectStore
from trackway_common.object_store.opening import open_store
from trackway_common.object_store.port import (
    AlreadyExists,
    Bytes,
    ObjectStore,
    StorageFull,
    refuse_without_conditional_create,
)

__all__ = [
    "AlreadyExists",
    "BlobStore",
    "Bytes",
    "InMemoryObjectStore",
    "LocalObjectStore",
    "ObjectStore",
    "StorageFull",
    "open_store",
    "refuse_without_conditional_create",
]
