"""Run specs: every violation at once, under the field that the user wrote, with what to write instead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common.canonical import digest
from trackway_common.errors import CommandRejected, Unavailable
from trackway_common.evaluation_pack import EvaluationPack, pack_digest, parse_pack
from trackway_common.events import (
    CodeRef,
    EntrypointKind,
    InFlightPolicy,
    Label,
    RetryOverride,
    TerminationReason,
    Tunable,
)
from trackway_scheduler.domain.spec import resolve
from trackway_scheduler.domain.spec.reading import request_digest

from tests.unit.scheduler.builders import pool
from tests.unit.scheduler.specs import DIGEST, OTHER, PACK, SPEC, read, submission, surroundings, violations


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


def test_a_dataset_of_another_project_is_none_of_the_runs():
    found = violations(SPEC.replace("project: demo", "project: prod"))
    assert found["datasets[0]"] == (
        "no dataset 'digits' is registered in project 'prod'; project demo has one of that name; "
        "register it with `trackway dataset snapshot digits PATH --project prod`"
    )


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
