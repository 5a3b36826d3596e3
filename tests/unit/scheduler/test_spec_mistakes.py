"""Each mistake in a run spec is named by the field that the user wrote, with what to write instead."""

from __future__ import annotations

import pytest

from tests.unit.scheduler.specs import SPEC, violations

CRASH = "process_crash: {max: 1, backoff_s: 0.5}"
OOM_MUTATE = "retry.device_oom.mutate[0]"
AC = "tunable.activation_checkpointing"


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
        ("{micro_batch: batch_size}", "{micro_batch: lr}", "tunable.micro_batch", "whole number from 1"),
        ("{micro_batch: batch_size}", "{activation_checkpointing: lr}", AC, "true or false"),
        ("{micro_batch: batch_size}", "{micro_batch: steps, accumulation: steps}", "tunable.accumulation", "one role"),
        ("world_size: 2", "world_size: {min: 1}", "topology.world_size.max", "is required"),
        ("world_size: 2", "world_size: {min: 2, max: 1}", "topology.world_size.min", "the smaller one under min"),
        ("world_size: 2", "world_size: {min: 2, max: 3}", "topology.world_size.min", "uneven"),
        ("world_size: 2", "world_size: {min: 1, max: 4}", "topology.world_size.max", "one run 2 at most"),
        ("world_size: 2", "world_size: 2, world_size_wait_s: 9", "topology.world_size_wait_s", "{min: N, max: M}"),
        ("compute: local-cpu-2x", "compute: []", "compute", "empty list"),
        ("compute: local-cpu-2x", "compute: [local-cpu-2x, local-cpu-2x]", "compute[1]", "stands twice"),
        ("compute: local-cpu-2x", "compute: [local-cpu-2x, gpu-2x]", "compute[1]", "did you mean 'gpu-1x'?"),
        ("compute: local-cpu-2x", "compute: [local-cpu-3x, gpu-1x]", "compute[0]", "no compute class"),
        ("process_crash:", "proces_crash:", "retry.proces_crash", "did you mean 'process_crash'?"),
        ("process_crash:", "completed:", "retry.completed", "leave it out"),
        ("process_crash:", "device_oom:", "retry.device_oom.max", "declare accumulation under `tunable`"),
        ("process_crash:", "storage_full:", "retry.storage_full.max", "only a person"),
        ("process_crash:", "data_corrupt:", "retry.data_corrupt", "bad data is never retried"),
        ("process_crash:", "data_schema_drift:", "retry.data_schema_drift", "bad data is never retried"),
        ("backoff_s: 0.5", "backoff_s: -1", "retry.process_crash.backoff_s", "must lie in"),
        ("backoff_s: 0.5", "mutate: [x]", "retry.process_crash.mutate", "nothing about the run's shape"),
        ("max: 1, backoff_s: 0.5", "max: 0, mutate: [x]", "retry.process_crash.mutate", "max is 0"),
        (CRASH, "device_oom: {mutate: [halve_micro]}", OOM_MUTATE, "did you mean 'halve_micro_batch'?"),
        (CRASH, "device_oom: {mutate: [raise_memory]}", OOM_MUTATE, "no step against this reason"),
        (CRASH, "device_oom: {mutate: [halve_micro_batch]}", OOM_MUTATE, "declare accumulation under `tunable`"),
        (CRASH, "device_oom: {mutate: [more_shards]}", OOM_MUTATE, "declare shards under `tunable`"),
        (CRASH, "device_oom: {mutate: [next_compute]}", OOM_MUTATE, "compute: [CLASS, LARGER]"),
        (CRASH, "host_oom: {mutate: [raise_memory, raise_memory]}", "retry.host_oom.mutate[1]", "stands twice"),
        (CRASH, "host_oom: {max: 0, mutate: [raise_memory]}", "retry.host_oom.mutate", "max is 0"),
        (CRASH, "host_oom: {max: -2}", "retry.host_oom.max", "at least -1"),
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
