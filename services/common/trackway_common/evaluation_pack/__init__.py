"""Evaluation packs: what is measured on a checkpoint, and what it must reach.

A pack is immutable and named by the digest of its canonical JSON. Everything here is pure: the
scheduler uses it to refuse a bad pack at submission, the evaluator to run a good one.
"""

from trackway_common.evaluation_pack.checks import check_against
from trackway_common.evaluation_pack.identity import (
    SCORER_VERSIONS,
    TaskInputs,
    decoding_digest,
    decoding_json,
    evaluation_identity,
    pack_bytes,
    pack_digest,
    pack_json,
    task_digest,
)
from trackway_common.evaluation_pack.model import (
    Adapter,
    Capture,
    Decoding,
    EvaluationPack,
    EvaluatorSpec,
    Gate,
    GateOp,
    MetricSpec,
    TaskKind,
    TaskSpec,
)
from trackway_common.evaluation_pack.parse import parse_pack

__all__ = [
    "SCORER_VERSIONS",
    "Adapter",
    "Capture",
    "Decoding",
    "EvaluationPack",
    "EvaluatorSpec",
    "Gate",
    "GateOp",
    "MetricSpec",
    "TaskInputs",
    "TaskKind",
    "TaskSpec",
    "check_against",
    "decoding_digest",
    "decoding_json",
    "evaluation_identity",
    "pack_bytes",
    "pack_digest",
    "pack_json",
    "parse_pack",
    "task_digest",
]
