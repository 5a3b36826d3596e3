"""What a rank's actor is told to run. Plain values: importable without torch or Ray.

The agent builds one ``RankSpec`` per rank from the run's resolved spec and the placement; whatever is large
(code archive, dataset manifests) is named by digest and read from the store by the actor itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.events import Entrypoint, FailureRule, InFlightPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInput:
    """One dataset snapshot of the run."""

    name: str
    manifest_digest: str
    """Blob ``{root, files: [{path, bytes, sha256}, …], …}``."""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeTarget:
    """The committed checkpoint that this attempt continues from."""

    step: int
    path: str
    """The checkpoint's folder as its commit entry names it, relative to the run's folder: ``data/s…``."""
    manifest_digest: str
    run_id: str
    """Run whose folder holds it; another than the spec's when it was cloned from there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a trainer may be without progress; 0: for ever, absent: the default."""

    stall_s: float | None = None
    first_step_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSpec:
    """Everything one rank of one attempt needs; equal on all ranks but for the rank's own numbers."""

    run_id: str
    attempt: int
    epoch: int
    attempt_token: str
    """Random, minted once per attempt by the agent: checkpoint nonces are derived from it, alike on all ranks."""
    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    group_rank: int
    """Number of the node among the attempt's nodes."""
    group_world_size: int
    master_addr: str
    """``describe().address`` of rank 0."""
    master_port: int
    """``describe().free_port`` of rank 0."""
    entrypoint: Entrypoint
    """``FUNCTION``: ``argv[0]`` is ``package.module:function`` of the code archive, called without arguments;
    ``SCRIPT``: a Python file of the archive, and its arguments; ``COMMAND``: a program, and its arguments."""
    store_url: str
    """``file:///abs/path``: root of ``blobs/`` and ``checkpoints/``."""
    code_archive_digest: str | None
    """Absent: the program needs no code but what is installed."""
    hyperparameters_json: str
    """Canonical JSON; its digest is ``config_digest``."""
    config_digest: str
    seed: int
    deterministic: bool = False
    datasets: tuple[DatasetInput, ...] = ()
    resume: ResumeTarget | None = None
    in_flight: InFlightPolicy = InFlightPolicy.WAIT
    """What ``checkpoint()`` does while an earlier save is not yet on disk. ``WAIT``: what was asked for is saved.
    ``SKIP``: left out on every rank, counted in the metric ``trackway/checkpoints_skipped``."""
    visible_devices: tuple[str, ...] = ()
    """Devices of all ranks on this node in the order of their local ranks (torchrun's convention); empty: CPU."""
    python: str | None = None
    """Interpreter of the trainer; absent: the actor's own."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables set on top of the contract's."""
    patience: Patience = Patience()
    memory_bytes: int = 0
    """Bound of the trainer's memory, with everything that it starts; 0: none."""
    failure_rules: tuple[FailureRule, ...] = ()
    non_finite_loss: str = "fail"
    """``fail`` or ``ignore``."""
    traceparent: str | None = None
