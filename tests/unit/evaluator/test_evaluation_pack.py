"""Packs: what is read, what is refused with which words, and what makes two of them the same."""

from __future__ import annotations

import dataclasses
import json

import pytest
from trackway_common.errors import CommandRejected
from trackway_common.evaluation_pack import (
    Adapter,
    GateOp,
    TaskInputs,
    TaskKind,
    check_against,
    evaluation_identity,
    pack_bytes,
    pack_digest,
    parse_pack,
    task_digest,
)

GOOD = """
apiVersion: trackway/v1
kind: EvaluationPack
name: digits
evaluator: {adapter: builtin}
tasks:
  - {id: accuracy, version: "1", kind: classification, dataset: digits, split: test,
     data: "digits.data:samples", slices: [label]}
gates: [{task: accuracy, metric: accuracy, op: ">=", threshold: 0.8}]
"""


def violations(text: str) -> dict[str, str]:
    with pytest.raises(CommandRejected) as refused:
        parse_pack(text.encode())
    return {one.field: one.description for one in refused.value.violations}


def test_defaults_are_filled_in() -> None:
    pack = parse_pack(GOOD.encode())
    (task,) = pack.tasks
    assert task.kind is TaskKind.CLASSIFICATION
    assert [(m.name, m.higher_is_better, m.primary) for m in task.metrics] == [
        ("accuracy", True, True),
        ("log_loss", False, False),
    ]
    assert pack.gates[0].op is GateOp.AT_LEAST
    assert pack.gates[0].blocking
    assert pack.capture.raw_outputs
    assert pack.evaluator.adapter is Adapter.BUILTIN


def test_canonical_form_parses_to_the_same_pack() -> None:
    pack = parse_pack(GOOD.encode())
    assert parse_pack(pack_bytes(pack)) == pack
    assert json.loads(pack_bytes(pack))["tasks"][0]["metrics"][0]["name"] == "accuracy"


def test_identity_ignores_how_it_was_written() -> None:
    spelled_out = GOOD.replace("slices: [label]", "slices: [label], limit: 0").replace("0.8}", "8e-1, blocking: true}")
    assert pack_digest(parse_pack(GOOD.encode())) == pack_digest(parse_pack(spelled_out.encode()))


def test_identity_changes_with_a_threshold() -> None:
    assert pack_digest(parse_pack(GOOD.encode())) != pack_digest(parse_pack(GOOD.replace("0.8", "0.9").encode()))


@pytest.mark.parametrize(
    ("written", "instead", "field", "words"),
    [
        ("kind: classification", "kind: clasification", "tasks[0].kind", "did you mean 'classification'?"),
        ("kind: classification", "kind: regression", "tasks[0].kind", "one of classification, bits_per_byte"),
        ("kind: classification", "kind: command", "tasks[0].kind", "can't be run by the builtin adapter"),
        ("gates:", "gate:", "gate", "did you mean 'gates'?"),
        ("split: test", "splitt: test", "tasks[0].splitt", "did you mean 'split'?"),
        ("split: test", "splitt: test", "tasks[0].split", "is required"),
        ("name: digits", "name: Digits!", "name", "must be 1 to 63"),
        ("name: digits", "name: 7", "name", 'quote it: "7"'),
        ("name: digits", "", "name", "is required"),
        ("kind: EvaluationPack", "kind: TrainingRun", "kind", "must be EvaluationPack"),
        ("trackway/v1", "trackway/v2", "apiVersion", "must be trackway/v1"),
        ('version: "1"', "version: 1", "tasks[0].version", 'quote it: "1"'),
        ("digits.data:samples", "digits.data", "tasks[0].data", "must be module:function"),
        ("digits.data:samples", "digits data:x y", "tasks[0].data", "must be module:function"),
        ("task: accuracy,", "task: acuracy,", "gates[0].task", "did you mean 'accuracy'?"),
        ("metric: accuracy", "metric: accurcy", "gates[0].metric", "did you mean 'accuracy'?"),
        ("0.8}", "high}", "gates[0].threshold", "must be a number"),
        (", threshold: 0.8", "", "gates[0].threshold", "is required"),
        ('">="', '"=="', "gates[0].op", "one of >=, >, <=, <"),
        ("slices: [label]", "limit: -1", "tasks[0].limit", "at least 0"),
        ("slices: [label]", "limit: true", "tasks[0].limit", "must be a whole number"),
        ("slices: [label]", "slices: label", "tasks[0].slices", "must be a list"),
        ("slices: [label]", "slices: [3]", "tasks[0].slices[0]", "must be text"),
        ("slices: [label]", 'decode: "a.b:c"', "tasks[0].decode", "belongs to completion"),
        ("slices: [label]", "metrics: [{name: f2}]", "tasks[0].metrics[0].name", "no metric of classification"),
        ("slices: [label]", "metrics: [accuracy]", "tasks[0].metrics[0]", "must be a mapping, not text"),
        ("{adapter: builtin}", "{adapter: builtn}", "evaluator.adapter", "did you mean 'builtin'?"),
        ("{adapter: builtin}", "{adapter: builtin, command: [x]}", "evaluator.command", "belongs to the command"),
        ("{adapter: builtin}", "{adapter: command}", "evaluator.command", "is required by the command adapter"),
        ("{adapter: builtin}", "builtin", "evaluator", "must be a mapping"),
        ("gates:", "decoding: {temperature: -1}\ngates:", "decoding.temperature", "must lie in [0, 100]"),
        ("gates:", f"decoding: {{seed: {2**60}}}\ngates:", "decoding.seed", "below 2^53"),
        ("gates:", f"decoding: {{top_p: {'9' * 400}}}\ngates:", "decoding.top_p", "must lie in [0, 1]"),
        ("gates:", "capture: {failures: some}\ngates:", "capture.failures", "must be a whole number"),
        ("gates:", "capture: {raw_outputs: 1}\ngates:", "capture.raw_outputs", "must be true or false"),
    ],
)
def test_bad_field_is_named_with_what_to_write(written: str, instead: str, field: str, words: str) -> None:
    assert written in GOOD
    found = violations(GOOD.replace(written, instead))
    assert words in found[f"evaluation_pack.{field}"]


def test_all_violations_come_at_once() -> None:
    bad = GOOD.replace("classification", "clasification").replace("name: digits", "name: 7").replace("0.8", "x")
    assert len(violations(bad)) == 3


def test_repeated_task_and_metric_are_refused() -> None:
    task = "  - {id: a, version: v1, kind: bits_per_byte, dataset: d, split: s, data: 'm:f'}\n"
    found = violations(GOOD.split("tasks:")[0] + "tasks:\n" + task + task)
    assert "stands twice" in found["evaluation_pack.tasks[1].id"]


def test_pack_without_tasks_is_refused() -> None:
    assert "at least one" in violations(GOOD.split("tasks:")[0])["evaluation_pack.tasks"]


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe", b"a: [", b"a: 1\na: 2", b"x" * (1 << 20) + b"x", b"- 1", b"", b"{x: .nan}", b"x: " + b"9" * 5000],
)
def test_what_is_no_pack_at_all_is_refused(data: bytes) -> None:
    with pytest.raises(CommandRejected) as refused:
        parse_pack(data)
    assert refused.value.violations


def test_tasks_need_a_dataset_of_the_run() -> None:
    pack = parse_pack(GOOD.encode())
    assert check_against(pack, {"digits"}) == ()
    (found,) = check_against(pack, {"digit", "stdlib"})
    assert found.field == "evaluation_pack.tasks[0].dataset"
    assert "did you mean 'digit'?" in found.description


def test_task_digest_covers_definition_data_and_code() -> None:
    pack = parse_pack(GOOD.encode())
    (task,) = pack.tasks
    inputs = TaskInputs(dataset_digest="sha256:d", data_source_digest="sha256:c")
    digests = {
        task_digest(task, pack.decoding, inputs),
        task_digest(dataclasses.replace(task, version="2"), pack.decoding, inputs),
        task_digest(task, pack.decoding, dataclasses.replace(inputs, dataset_digest="sha256:e")),
        task_digest(task, pack.decoding, dataclasses.replace(inputs, data_source_digest="sha256:e")),
    }
    assert len(digests) == 4
    warmer = dataclasses.replace(pack.decoding, temperature=1.0)
    assert task_digest(task, warmer, inputs) in digests, "classification doesn't sample"


def test_evaluation_identity_is_of_pack_checkpoint_and_runner() -> None:
    assert evaluation_identity("p", "c") == evaluation_identity("p", "c")
    assert len({evaluation_identity("p", "c"), evaluation_identity("p", "d"), evaluation_identity("p", "c", 1)}) == 3
