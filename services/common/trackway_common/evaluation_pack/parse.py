"""Bytes → EvaluationPack, or every violation at once."""

from __future__ import annotations

import re

from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.evaluation_pack.checks import check_whole
from trackway_common.evaluation_pack.model import (
    METRICS_OF,
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
from trackway_common.fields import Fields
from trackway_common.yaml_core import load_yaml

API_VERSION = "trackway/v1"
KIND = "EvaluationPack"

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)

_PACK = ("apiVersion", "kind", "name", "evaluator", "tasks", "decoding", "gates", "capture")
_EVALUATOR = ("adapter", "command", "batch_size")
_TASK = ("id", "version", "kind", "dataset", "split", "limit", "data", "decode", "context", "metrics", "slices")
_METRIC = ("name", "higher_is_better", "primary")
_DECODING = ("temperature", "top_p", "max_tokens", "stop_tokens", "seed")
_GATE = ("task", "metric", "op", "threshold", "blocking")
_CAPTURE = ("raw_outputs", "failures")


def parse_pack(data: bytes, *, name: str = "evaluation_pack") -> EvaluationPack:
    """Read a pack from YAML or JSON.

    Args:
        data: UTF-8, at most 1 MiB.
        name: what the fields of an error begin with.
    Raises:
        CommandRejected: reason PACK_INVALID with every violation, or what ``load_yaml`` refuses.
    """
    found: list[FieldViolation] = []
    pack = _pack(Fields(load_yaml(data, name=name), name, found, _PACK))
    if not found:
        found.extend(check_whole(pack, name))
    if found:
        lines = "; ".join(f"{one.field} {one.description}" for one in found[:3])
        more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
        raise CommandRejected(
            f"the evaluation pack can't be used: {lines}{more}", reason="PACK_INVALID", violations=tuple(found)
        )
    return pack


def _pack(fields: Fields) -> EvaluationPack:
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        written = fields.text(key)
        if written and written != wanted:
            fields.violation(key, f"must be {wanted}, not {written!r}")
    return EvaluationPack(
        name=_name(fields, "name"),
        evaluator=_evaluator(fields.section("evaluator", _EVALUATOR)),
        tasks=tuple(_task(task) for task in fields.sections("tasks", _TASK)),
        decoding=_decoding(fields.section("decoding", _DECODING)),
        gates=tuple(_gate(gate) for gate in fields.sections("gates", _GATE)),
        capture=_capture(fields.section("capture", _CAPTURE)),
    )


def _evaluator(fields: Fields) -> EvaluatorSpec:
    return EvaluatorSpec(
        adapter=fields.choice("adapter", Adapter, Adapter.BUILTIN),
        command=fields.texts("command"),
        batch_size=fields.whole("batch_size", 32, at_least=1),
    )


def _task(fields: Fields) -> TaskSpec:
    kind = fields.choice("kind", TaskKind, TaskKind.COMMAND)
    return TaskSpec(
        id=_name(fields, "id"),
        version=fields.text("version"),
        kind=kind,
        dataset=fields.text("dataset"),
        split=fields.text("split"),
        limit=fields.whole("limit", 0, at_least=0),
        data=_function(fields, "data", required=kind is not TaskKind.COMMAND),
        decode=_function(fields, "decode", required=False),
        context=fields.whole("context", 0, at_least=0),
        metrics=_metrics(fields, kind),
        slices=fields.texts("slices"),
    )


def _metrics(fields: Fields, kind: TaskKind) -> tuple[MetricSpec, ...]:
    """The metrics written; where none are, all of the kind, the first one primary."""
    defaults = METRICS_OF[kind]
    written = [_metric(metric, defaults) for metric in fields.sections("metrics", _METRIC)]
    if written:
        return tuple(written)
    return tuple(
        MetricSpec(name=name, higher_is_better=higher, primary=i == 0)
        for i, (name, higher) in enumerate(defaults.items())
    )


def _metric(fields: Fields, defaults: dict[str, bool]) -> MetricSpec:
    name = _name(fields, "name")
    return MetricSpec(
        name=name,
        higher_is_better=fields.flag("higher_is_better", defaults.get(name, True)),
        primary=fields.flag("primary", False),
    )


def _decoding(fields: Fields) -> Decoding:
    return Decoding(
        temperature=fields.number("temperature", 0.0, low=0.0, high=100.0),
        top_p=fields.number("top_p", 1.0, low=0.0, high=1.0),
        max_tokens=fields.whole("max_tokens", 32, at_least=1),
        stop_tokens=fields.wholes("stop_tokens"),
        seed=fields.whole("seed", 0, at_least=0),
    )


def _gate(fields: Fields) -> Gate:
    return Gate(
        task=fields.text("task"),
        metric=fields.text("metric"),
        op=fields.choice("op", GateOp, GateOp.AT_LEAST),
        threshold=fields.number("threshold"),
        blocking=fields.flag("blocking", True),
    )


def _capture(fields: Fields) -> Capture:
    return Capture(raw_outputs=fields.flag("raw_outputs", True), failures=fields.whole("failures", 20, at_least=0))


def _name(fields: Fields, key: str) -> str:
    name = fields.text(key)
    if name and not _NAME.fullmatch(name):
        fields.violation(
            key, f"{name!r} must be 1 to 63 of a-z, 0-9, '.', '_' and '-', with a letter or digit at both ends"
        )
    return name


def _function(fields: Fields, key: str, *, required: bool) -> str:
    written = fields.text(key, None if required else "")
    if written and not _FUNCTION.fullmatch(written):
        fields.violation(key, f"{written!r} must be module:function, such as digits.data:samples")
    return written
