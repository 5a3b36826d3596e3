"""Errors that end an attempt with a reason of their own.

Any exception may do so: a class attribute ``trackway_reason`` that names a termination reason is all it takes.
"""

from __future__ import annotations


class DataCorrupt(Exception):
    """A file of a dataset is missing, or is not what the snapshot holds."""

    trackway_reason = "DATA_CORRUPT"


class DataUnavailable(Exception):
    """The storage of a dataset failed; the data itself may be whole."""

    trackway_reason = "STORAGE_TRANSIENT"


class DataSchemaDrift(Exception):
    """Data is whole, but has other columns, types or meanings than this program expects: raise it where you check."""

    trackway_reason = "DATA_SCHEMA_DRIFT"


class NumericDivergence(Exception):
    """The loss is no number any more; training goes on from the last checkpoint, once."""

    trackway_reason = "NUMERIC_DIVERGENCE"


class CheckpointCorrupt(Exception):
    """The checkpoint to continue from is damaged; an earlier one will be tried."""

    trackway_reason = "CHECKPOINT_CORRUPT"


class CheckpointIncompatible(Exception):
    """The checkpoint is whole, but of another model, optimizer or data order than this program's."""

    trackway_reason = "CHECKPOINT_INCOMPATIBLE"
