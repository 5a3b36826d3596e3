"""What the program is given is wrong: data, checkpoint, configuration."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason

from tests.faults.corpus.label import By, Label

DATA, CHECKPOINT, CONFIG = "data", "checkpoint", "configuration"
CORRUPT_DATA = (
    ("shard-changed", "A file of the dataset has other bytes than when it was snapshotted.", By.HARNESS),
    ("shard-missing", "A file of the dataset is gone.", By.HARNESS),
    ("manifest-damaged", "The stored manifest of the dataset does not match its digest.", By.HARNESS),
    ("bad-row", "A row does not parse; the program raises an error that names DATA_CORRUPT.", By.PROGRAM),
    ("undecodable-text", "A text file is no UTF-8: UnicodeDecodeError.", By.PROGRAM),
    ("truncated-parquet", "A Parquet file has no footer: pyarrow raises ArrowInvalid.", By.PROGRAM),
    ("truncated-gzip", "A gzip file ends too early: EOFError.", By.PROGRAM),
)
DRIFTS = (
    ("schema-drift-by-contract", "The program checks columns and raises an error that names DATA_SCHEMA_DRIFT."),
    ("schema-drift-by-arrow", "pyarrow refuses to cast a table to the schema that the program expects."),
)
CORRUPT_CHECKPOINTS = (
    ("checkpoint-bit-flip", "One bit of the chosen checkpoint's shard is flipped before the SDK reads it."),
    ("checkpoint-truncated", "A file of the chosen checkpoint's folder is cut short before it is copied back."),
    ("checkpoint-file-missing", "A file of the chosen checkpoint's folder is gone before it is copied back."),
    ("checkpoint-manifest-damaged", "The manifest of the chosen checkpoint does not match its digest any more."),
)
INVALID_CONFIG = (
    ("function-absent", "The entry point names a function that the module does not have."),
    ("script-absent", "The entry point names a script that the code does not have."),
    ("unknown-argument", "argparse refuses an argument: exit code 2."),
    ("command-absent", "The entry point names a program that is not there."),
    ("config-refused-by-model", "The model refuses its hyperparameters with an error that names CONFIG_INVALID."),
)


def labels() -> Iterator[Label]:
    """Every label of the three groups."""
    for name, does, by in CORRUPT_DATA:
        yield Label(name=name, group=DATA, does=does, reason=Reason.DATA_CORRUPT, move=NextMove.STOP, by=by)
    for name, does in DRIFTS:
        yield Label(name=name, group=DATA, does=does, reason=Reason.DATA_SCHEMA_DRIFT, move=NextMove.STOP)
    for name, does in CORRUPT_CHECKPOINTS:
        yield Label(
            name=name,
            group=CHECKPOINT,
            does=does,
            reason=Reason.CHECKPOINT_CORRUPT,
            move=NextMove.RETRY,
            by=By.HARNESS,
            attempt=2,
        )
    yield Label(
        name="checkpoint-of-another-model",
        group=CHECKPOINT,
        does="The second attempt builds a wider model than the checkpoint's; the SDK refuses to load it.",
        reason=Reason.CHECKPOINT_INCOMPATIBLE,
        move=NextMove.STOP,
        attempt=2,
    )
    yield Label(
        name="state-dict-mismatch",
        group=CHECKPOINT,
        does="A script calls load_state_dict with another model's state: torch raises RuntimeError.",
        reason=Reason.CHECKPOINT_INCOMPATIBLE,
        move=NextMove.STOP,
    )
    for name, does in INVALID_CONFIG:
        yield Label(name=name, group=CONFIG, does=does, reason=Reason.CONFIG_INVALID, move=NextMove.STOP)
