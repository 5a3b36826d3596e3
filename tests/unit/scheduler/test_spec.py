"""Run specs: every violation at once, under the field that the user wrote, with what to write instead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common.canonical import digest
from trackway_common.errors import CommandRejected, Unavailable
from trackway_common.evaluation_pack import EvaluationPack, pack_digest, parse_pack
from trackway_common.events import (
    CodeRef,
    DatasetRegistered,
    EntrypointKind,
    InFlightPolicy,
    Label,
    Price,
    RetryOverride,
    TerminationReason,
    Tunable,
)
from trackway_common.yaml_core import load_yaml
from trackway_scheduler.domain.catalogue import Catalogue, ComputeClass
from trackway_scheduler.domain.spec import Submission, Surroundings, read_spec, resolve
from trackway_scheduler.domain.spec.reading import Draft, request_digest
from trackway_scheduler.domain.state import DatasetState

from tests.unit.scheduler.builders import DIGEST, NOW, pool

SPEC = """
apiVersion: trackway/v1
kind: TrainingRun
project: demo
model_family: reasoning
entrypoint: {function: "digits.train:main"}
compute: local-cpu-2x
datasets: ["digits:1.0"]
topology: {world_size: 2, checkpoint: {keep_last: 4, in_flight: skip}}
evaluation_pack: tiny
evaluation: {model: "digits.model:build"}
hyperparameters: {batch_size: 32, lr: 1e-3, steps: 100}
tunable: {micro_batch: batch_size}
retry: {process_crash: {max: 1, backoff_s: 0.5}, "*": {ceiling: 4}}
labels: {team: vision}
seed: 7
"""
PACK = b"""
apiVersion: trackway/v1
kind: EvaluationPack
name: tiny
evaluator: {adapter: builtin}
tasks:
  - {id: accuracy, version: "1", kind: classification, dataset: digits, split: test, data: "digits.data:samples"}
"""
OTHER = "sha256:" + "3" * 64
CLASSES = (
    ComputeClass(
        name="local-cpu-2x", pool="local", accelerator_kind="cpu", accelerators_per_rank=0, cpus_per_rank=1.0,
        memory_bytes_per_rank=0, max_ranks=2, preemptible=False,
        price=Price(amount=0.02, currency="USD", since="2026-01-01"),
    ),
    ComputeClass(
        name="gpu-1x", pool="gpu", accelerator_kind="h100", accelerators_per_rank=1, cpus_per_rank=4.0,
        memory_bytes_per_rank=0, max_ranks=8, preemptible=True, price=Price(),
    ),
)  # fmt: skip


def registered(manifest_digest: str) -> DatasetRegistered:
    return DatasetRegistered(name="digits", manifest_digest=manifest_digest, registered_at=NOW)


def surroundings(**changes) -> Surroundings:
    known = Surroundings(
        datasets={"digits": DatasetState(name="digits", snapshots=(registered(OTHER), registered(DIGEST)))},
        pools={"local": pool()},
        catalogue=Catalogue(classes=CLASSES),
        pack=parse_pack(PACK),
        pack_names=("tiny",),
        code_is_stored=True,
    )
    return replace(known, **changes)


def submission(**changes) -> Submission:
    return replace(Submission(caller="ada", drawn_seed=99, code=CodeRef(archive_digest=DIGEST)), **changes)


def read(text: str = SPEC, sent: Submission | None = None) -> Draft:
    return read_spec(load_yaml(text.encode(), name="config"), sent or submission())


def violations(text: str, known: Surroundings | None = None, sent: Submission | None = None) -> dict[str, str]:
    with pytest.raises(CommandRejected) as refused:
        resolve(read(text, sent), known or surroundings())
    return {violation.field: violation.description for violation in refused.value.violations}


def test_a_good_spec_is_pinned_in_every_input():
    spec = resolve(read(), surroundings())
    assert (spec.project, spec.model_family, spec.owner) == ("demo", "reasoning", "ada")
    assert spec.entrypoint.kind is EntrypointKind.FUNCTION
    assert spec.entrypoint.argv == ("digits.train:main",)
    (dataset,) = spec.datasets
    assert (dataset.requested, dataset.manifest_digest, dataset.weight) == ("digits:1.0", DIGEST, 1.0)
    assert (spec.compute.pool, spec.compute.price.amount) == ("local", 0.02)
    assert (spec.runtime.kind, spec.runtime.environment_digest) == ("pool", DIGEST)
    assert spec.evaluation_pack.digest == pack_digest(parse_pack(PACK))
    assert spec.config_digest == digest({"batch_size": 32, "lr": 0.001, "steps": 100})
    assert spec.hyperparameters_json == '{"batch_size":32,"lr":0.001,"steps":100}'
    assert spec.topology.checkpoint.keep_last == 4
    assert spec.topology.checkpoint.in_flight is InFlightPolicy.SKIP
    assert spec.topology.strategy == "ddp"
    assert (spec.seed, spec.seed_drawn) == (7, False)
    assert spec.tunable == (Tunable(role="micro_batch", key="batch_size"),)
    assert spec.retry == (RetryOverride(reason=TerminationReason.PROCESS_CRASH, max=1, backoff_seconds=0.5),)
    assert (spec.retry_ceiling, spec.max_attempts) == (4, 50)
    assert spec.labels == (Label(key="team", value="vision"),)


def test_defaults_are_written_out_and_an_absent_seed_is_drawn_and_said_so():
    text = "\n".join(line for line in SPEC.splitlines() if not line.startswith(("seed", "topology", "evaluation_pack")))
    spec = resolve(read(text), surroundings(pack=None))
    assert (spec.seed, spec.seed_drawn) == (99, True)
    assert (spec.topology.world_size, spec.topology.strategy) == (1, "single")
    assert spec.topology.checkpoint.keep_last == 3
    assert spec.evaluation_pack.digest == ""
    assert (spec.criticality, spec.trigger.kind, spec.code.requested) == ("experiment", "person", ".")


def test_flags_override_the_spec_and_its_digest_but_not_the_config_digest():
    plain = resolve(read(), surroundings())
    sent = submission(datasets=(f"digits@{OTHER}:0.5",), compute="local-cpu-2x")
    spec = resolve(read(SPEC, sent), surroundings())
    assert spec.datasets[0].manifest_digest == OTHER
    assert spec.datasets[0].weight == 0.5
    assert spec.spec_digest != plain.spec_digest
    assert spec.config_digest == plain.config_digest


def test_a_short_digest_is_enough_where_it_is_unique():
    spec = resolve(read(SPEC, submission(datasets=("digits@333333",))), surroundings())
    assert spec.datasets[0].manifest_digest == OTHER


def test_all_violations_come_at_once():
    text = SPEC.replace("project: demo", "").replace("world_size: 2", "world_size: two").replace("seed: 7", "sede: 7")
    found = violations(text.replace("digits:1.0", "digit"))
    assert set(found) == {"project", "topology.world_size", "sede", "datasets[0]", "evaluation_pack.tasks[0].dataset"}
    assert found["project"] == "is required"
    assert "did you mean 'seed'?" in found["sede"]
    assert "whole number" in found["topology.world_size"]
    assert "did you mean 'digits'?" in found["datasets[0]"]
    assert "trackway dataset snapshot digit PATH" in found["datasets[0]"]


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("trackway/v1", "trackway/v2", "apiVersion", "must be trackway/v1"),
        ("TrainingRun", "Sweep", "kind", "must be TrainingRun"),
        ("project: demo", "project: 'a b'", "project", "letters, digits"),
        ("project: demo", "project: 12", "project", 'quote it: "12"'),
        ('{function: "digits.train:main"}', "{function: digits.train}", "entrypoint.function", "module:function"),
        ('{function: "digits.train:main"}', "{}", "entrypoint", "has none; write exactly one"),
        ('{function: "digits.train:main"}', "{script: a.py, command: [x]}", "entrypoint", "has script and command"),
        ('{function: "digits.train:main"}', "{script: ../a.py}", "entrypoint.script", "inside the code folder"),
        ('{function: "digits.train:main"}', "{script: a.sh}", "entrypoint.script", ".py file"),
        ('{function: "digits.train:main"}', "{script: a.py, args: [1]}", "entrypoint.args[0]", "must be text"),
        ('{function: "digits.train:main"}', "{command: []}", "entrypoint.command", "list of words"),
        ('{function: "digits.train:main"}', "{command: [x], args: [y]}", "entrypoint.args", "belongs to script"),
        ("seed: 7", "runtime: {kind: lock}", "runtime.kind", "'lock' is not available yet"),
        ("seed: 7", "runtime: {kind: image}", "runtime.kind", "'image' is not available yet"),
        ("seed: 7", "runtime: {kind: conda}", "runtime.kind", "not known"),
        ("seed: 7", "seed: -1", "seed", "at least 0"),
        ("seed: 7", "max_attempts: 0", "max_attempts", "at least 1"),
        ("seed: 7", "criticality: relase", "criticality", "did you mean 'release'?"),
        ("seed: 7", "deterministic: yes", "deterministic", "true or false"),
        ("seed: 7", "trigger: {kind: whim}", "trigger.kind", "person, schedule, code, data"),
        ("world_size: 2", "world_size: 0", "topology.world_size", "at least 1"),
        ("world_size: 2", "world_size: 2, strategy: single", "topology.strategy", "one rank"),
        ("world_size: 2", "world_size: 2, precision: fp8", "topology.precision", "float32"),
        ("keep_last: 4", "keep_last: 1", "topology.checkpoint.keep_last", "at least 2"),
        ("in_flight: skip", "in_flight: drop", "topology.checkpoint.in_flight", "wait, skip"),
        ("world_size: 2", "world_size: 3", "topology.world_size", "asks for 3 ranks"),
        ("local-cpu-2x", "local-cpu-3x", "compute", "did you mean 'local-cpu-2x'?"),
        ("compute: local-cpu-2x", "", "compute", "is required"),
        ("digits:1.0", "digits:0", "datasets[0]", "above 0"),
        ("digits:1.0", "digits:heavy", "datasets[0]", "above 0"),
        ("digits:1.0", "digits@xyz", "datasets[0]", "NAME[@DIGEST][:WEIGHT]"),
        ("digits:1.0", "digits@4444444", "datasets[0]", "no snapshot has"),
        ('["digits:1.0"]', '["digits", "digits:2"]', "datasets[1]", "stands twice"),
        ('["digits:1.0"]', "digits", "datasets", "must be a list"),
        ("lr: 1e-3", "lr: 9007199254740993", "hyperparameters.lr", "beyond 2^53"),
        ("{batch_size: 32, lr: 1e-3, steps: 100}", "[1]", "hyperparameters", "must be a mapping"),
        ("{micro_batch: batch_size}", "{micro_batch: batchsize}", "tunable.micro_batch", "did you mean 'batch_size'?"),
        ("{micro_batch: batch_size}", "{microbatch: batch_size}", "tunable.microbatch", "did you mean 'micro_batch'?"),
        ("process_crash:", "proces_crash:", "retry.proces_crash", "did you mean 'process_crash'?"),
        ("process_crash:", "completed:", "retry.completed", "leave it out"),
        ("process_crash:", "device_oom:", "retry.device_oom.max", "same shape"),
        ("backoff_s: 0.5", "mutate: [x]", "retry.process_crash.mutate", "not available yet"),
        ("backoff_s: 0.5", "wait: 1", "retry.process_crash.wait", "is not a field"),
        ("max: 1", "max: -2", "retry.process_crash.max", "at least -1"),
        ("ceiling: 4", "ceiling: 0", "retry.*.ceiling", "at least 1"),
        ('{model: "digits.model:build"}', "{}", "evaluation.model", "builtin evaluator"),
        ('{model: "digits.model:build"}', "{model: build}", "evaluation.model", "module:function"),
        ("{team: vision}", "{team: 4}", "labels.team", "must be text"),
        ("seed: 7", "code: {paht: .}", "code.paht", "did you mean 'path'?"),
    ],
)
def test_each_mistake_is_named_by_its_field(old, new, field, words):
    assert old in SPEC
    found = violations(SPEC.replace(old, new))
    assert words in found[field], found


def test_the_room_of_the_pool_counts_besides_the_class():
    found = violations(SPEC, surroundings(pools={"local": pool(cpus=1.5)}))
    assert "has room for 1" in found["topology.world_size"]


def test_unknown_pack_lists_those_registered():
    found = violations(SPEC.replace("evaluation_pack: tiny", "evaluation_pack: tony"), surroundings(pack=None))
    assert "did you mean 'tiny'?" in found["evaluation_pack"]
    assert "registered: tiny" in found["evaluation_pack"]


def test_a_pack_of_another_name_and_on_another_dataset_is_refused():
    pack = parse_pack(PACK.replace(b"dataset: digits", b"dataset: letters").replace(b"name: tiny", b"name: tony"))
    assert isinstance(pack, EvaluationPack)
    found = violations(SPEC, surroundings(pack=pack))
    assert "is named 'tony'" in found["evaluation_pack"]
    assert "'letters' is not a dataset of the run" in found["evaluation_pack.tasks[0].dataset"]


def test_code_must_be_archived_and_stored():
    assert "is required" in violations(SPEC, sent=submission(code=CodeRef()))["code_archive_digest"]
    found = violations(SPEC, surroundings(code_is_stored=False))
    assert "not a stored blob" in found["code_archive_digest"]


def test_a_pool_never_heard_from_is_no_fault_of_the_caller():
    with pytest.raises(Unavailable, match="pool local"):
        resolve(read(), surroundings(pools={}))
    with pytest.raises(Unavailable, match="environment"):
        resolve(read(), surroundings(pools={"local": replace(pool(), environment_digest="")}))


def test_a_spec_that_is_no_mapping_is_refused():
    found = violations("- 1\n- 2\n")
    assert "must be a mapping" in found["config"]


def test_half_a_character_is_refused_before_it_reaches_the_log():
    with pytest.raises(CommandRejected, match="half a character"):
        read(SPEC + 'experiment: "\\ud800"\n')


def test_the_request_digest_changes_with_the_body_only():
    one = request_digest(b"a", b"", submission())
    assert one == request_digest(b"a", b"", submission(drawn_seed=1, caller="eve"))
    assert one != request_digest(b"b", b"", submission())
    assert one != request_digest(b"a", b"x", submission())
    assert one != request_digest(b"a", b"", submission(compute="other"))
