"""Names and keys of a run's checkpoints; the same on a disk and in an object store.

checkpoints/<run>/log/00000000000000000042.json    an entry of the commit log, created once
checkpoints/<run>/data/s000001200-e0004-<nonce>/   one attempt at one checkpoint
    shard/…   rank/r00000.json (receipt)   manifest.json
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from trackway_common.errors import CommandRejected

ROOT = "checkpoints"
MAX_STEP = 10**15
_NAME = re.compile(r"s(\d{9,15})-e(\d{4,9})-([0-9a-z]{4,32})")
_NONCE = re.compile(r"[0-9a-z]{4,32}")
_SLOT_FILE = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class CheckpointName:
    """One attempt at one checkpoint. Epoch and nonce make it a path that no other attempt can write."""

    step: int
    epoch: int
    nonce: str

    def __post_init__(self) -> None:
        if not 0 <= self.step < MAX_STEP or not 0 <= self.epoch < 10**9 or not _NONCE.fullmatch(self.nonce):
            raise CommandRejected(
                f"step {self.step}, epoch {self.epoch}, nonce {self.nonce!r} name no checkpoint: "
                "step and epoch are not negative, the nonce is 4 to 32 of 0-9a-z"
            )

    def __str__(self) -> str:
        return f"s{self.step:09d}-e{self.epoch:04d}-{self.nonce}"

    @property
    def path(self) -> str:
        """Path below the run's folder, as commit entries name it."""
        return f"data/{self}"


def new_nonce() -> str:
    """A nonce that no other attempt at a checkpoint has."""
    return secrets.token_hex(4)


def parse_name(text: str) -> CheckpointName:
    """Read ``s000001200-e0004-<nonce>``; raises ``CommandRejected`` when the text is not exactly that form."""
    match = _NAME.fullmatch(text)
    name = CheckpointName(step=int(match[1]), epoch=int(match[2]), nonce=match[3]) if match else None
    if name is None or str(name) != text:
        raise CommandRejected(f"{text!r} names no checkpoint; it looks like s000001200-e0004-1a2b3c4d")
    return name


def parse_path(path: str) -> CheckpointName:
    """Read the path that a commit entry names, ``data/<name>``."""
    folder, _, name = path.partition("/")
    if folder != "data":
        raise CommandRejected(f"{path!r} is no checkpoint path; it looks like data/s000001200-e0004-1a2b3c4d")
    return parse_name(name)


def run_prefix(run_id: str) -> str:
    """Everything of one run."""
    return f"{ROOT}/{run_id}"


def log_prefix(run_id: str) -> str:
    """The run's commit log."""
    return f"{run_prefix(run_id)}/log"


def log_key(run_id: str, slot: int) -> str:
    """One entry of the commit log; slots begin at 1."""
    return f"{log_prefix(run_id)}/{slot_file(slot)}"


def slot_file(slot: int) -> str:
    """File name of an entry; names order as slots do."""
    return f"{slot:020d}.json"


def parse_slot_file(name: str) -> int | None:
    """Slot of an entry's file name, None for any other name."""
    match = _SLOT_FILE.fullmatch(name)
    return int(match[1]) if match else None


def hint_key(run_id: str) -> str:
    """Advisory: a slot that existed once, where listings may start."""
    return f"{log_prefix(run_id)}/hint"


def data_prefix(run_id: str) -> str:
    """All attempts at checkpoints of the run, committed or not."""
    return f"{run_prefix(run_id)}/data"


def trash_prefix(run_id: str) -> str:
    """Where deleted checkpoints are moved before their bytes are freed."""
    return f"{run_prefix(run_id)}/trash"


def checkpoint_prefix(run_id: str, name: CheckpointName) -> str:
    """One attempt at a checkpoint."""
    return f"{data_prefix(run_id)}/{name}"


def rank_prefix(run_id: str, name: CheckpointName) -> str:
    """Where the ranks write their receipts."""
    return f"{checkpoint_prefix(run_id, name)}/rank"


def receipt_path(rank: int) -> str:
    """A rank's receipt, below the checkpoint's prefix."""
    return f"rank/r{rank:05d}.json"


def receipt_key(run_id: str, name: CheckpointName, rank: int) -> str:
    """A rank's receipt."""
    return f"{checkpoint_prefix(run_id, name)}/{receipt_path(rank)}"


def manifest_key(run_id: str, name: CheckpointName) -> str:
    """What the checkpoint consists of; its digest stands in the commit entry."""
    return f"{checkpoint_prefix(run_id, name)}/manifest.json"
