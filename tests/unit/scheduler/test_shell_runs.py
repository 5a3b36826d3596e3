"""A run through the whole scheduler on an in-memory log."""

from __future__ import annotations

import json

import pytest
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import CheckpointCommitted, EvaluationCompleted, EvaluationExhausted, Verdict
from trackway_common.events import TerminationReason as Reason
from trackway_common.ids import uuid7
from trackway_proto.v1 import dataset_service_pb2, pool_service_pb2
from trackway_proto.v1 import run_service_pb2 as pb

from tests.unit.scheduler.builders import checkpoint
from tests.unit.scheduler.stage import PACK, SPEC, Caller, watch

QUICK = SPEC + "retry: {process_crash: {max: 1, backoff_s: 2}}\n"
MANIFEST = json.dumps(
    {
        "name": "digits",
        "root": "/data",
        "files": [{"path": "a", "bytes": 1, "sha256": "a" * 64, "split": "test"}],
        "splits": {"test": "sha256:" + "a" * 64},
    }
).encode()


async def test_a_run_without_a_pack_is_placed_ends_and_succeeds(stage):
    run = await stage.submit()
    assert run.name == f"projects/demo/runs/{run.run_id}"
    assert run.spec.runtime.environment_digest == stage.world.agent.environment_digest
    running = await stage.phase(run.run_id, "RUNNING")
    assert running.attempt == 1
    await stage.world.end_attempt(run.run_id, 1, Reason.COMPLETED)
    done = await stage.phase(run.run_id, "SUCCEEDED")
    assert done.HasField("ended_at")
    assert stage.world.run_facts(run.run_id) == [
        "RunSubmitted", "RunQueued", "AttemptPlaced", "RetryDecided", "RunSucceeded",
    ]  # fmt: skip


async def test_a_crash_is_retried_after_its_backoff_and_then_fails(stage):
    run = await stage.submit(QUICK)
    await stage.phase(run.run_id, "RUNNING")
    await stage.world.end_attempt(run.run_id, 1, Reason.PROCESS_CRASH)
    queued = await stage.phase(run.run_id, "QUEUED")
    assert (queued.decisions[0].spent, queued.decisions[0].budget) == (1, 1)
    await stage.until(lambda: stage.state(run.run_id).attempt == 2)
    placed = stage.state(run.run_id).placed
    assert placed.placed_at >= stage.state(run.run_id).decisions[0].not_before
    await stage.world.end_attempt(run.run_id, 2, Reason.PROCESS_CRASH)
    failed = await stage.phase(run.run_id, "FAILED")
    assert failed.reason == "PROCESS_CRASH"


async def test_the_whole_chain_with_a_pack_and_its_gate(stage):
    request = dataset_service_pb2.RegisterDatasetRequest(request_id=uuid7(), project="demo", manifest=MANIFEST)
    dataset = await stage.datasets.RegisterDataset(request, Caller())
    run = await stage.submit(
        SPEC + 'evaluation: {model: "m.model:build"}\n',
        datasets=["digits"], evaluation_pack="tiny", evaluation_pack_body=PACK,
    )  # fmt: skip
    assert run.spec.datasets[0].manifest_digest == dataset.manifest_digest
    await stage.phase(run.run_id, "RUNNING")
    await stage.world.commit_checkpoint(
        run.run_id, 1, CheckpointCommitted(checkpoint=checkpoint(5, slot=1), committed_at=stage.world.clock.now())
    )
    await stage.world.end_attempt(run.run_id, 1, Reason.COMPLETED)
    evaluating = await stage.phase(run.run_id, "EVALUATING")
    assert evaluating.last_committed.step == 5
    now = stage.world.clock.now()
    passed = EvaluationCompleted(
        evaluation_id=evaluating.evaluation_id, verdict=Verdict.PASSED, checkpoint=checkpoint(5, slot=1),
        started_at=now, completed_at=now,
    )  # fmt: skip
    await stage.world.end_evaluation(run.run_id, passed)
    await stage.phase(run.run_id, "SUCCEEDED")
    messages = await watch(stage, run.run_id)
    assert {message.stream.split("/")[0] for message in messages} == {"runs", "attempts", "checkpoints", "evaluations"}
    again = await stage.submit(
        SPEC + 'evaluation: {model: "m.model:build"}\n', datasets=["digits"], evaluation_pack="tiny"
    )
    assert again.spec.evaluation_pack == run.spec.evaluation_pack


async def test_projects_have_datasets_of_their_own(stage):
    async def register(project):
        request = dataset_service_pb2.RegisterDatasetRequest(request_id=uuid7(), project=project, manifest=MANIFEST)
        return await stage.datasets.RegisterDataset(request, Caller())

    async def names(parent):
        request = dataset_service_pb2.ListDatasetsRequest(parent=parent)
        return [dataset.name for dataset in (await stage.datasets.ListDatasets(request, Caller())).datasets]

    first, again, other = await register("demo"), await register("demo"), await register("prod")
    assert first.name == again.name == f"projects/demo/datasets/digits@{first.manifest_digest}"
    assert await names("projects/-") == [first.name, other.name]
    assert await names("projects/prod") == [other.name]
    for name in (first.name, other.name):
        found = await stage.datasets.GetDataset(dataset_service_pb2.GetDatasetRequest(name=name), Caller())
        assert (found.name, json.loads(found.manifest)) == (name, json.loads(MANIFEST))
    with pytest.raises(NotFound, match="projects demo, prod have one"):
        await stage.datasets.GetDataset(
            dataset_service_pb2.GetDatasetRequest(name="projects/test/datasets/digits"), Caller()
        )
    with pytest.raises(CommandRejected, match="project 'a/b' must be"):
        await register("a/b")
    with pytest.raises(CommandRejected, match="project is required"):
        await register("")


async def test_an_exhausted_evaluation_holds_the_run_and_places_nothing(stage):
    request = dataset_service_pb2.RegisterDatasetRequest(request_id=uuid7(), project="demo", manifest=MANIFEST)
    await stage.datasets.RegisterDataset(request, Caller())
    run = await stage.submit(
        SPEC + 'evaluation: {model: "m.model:build"}\n',
        datasets=["digits"], evaluation_pack="tiny", evaluation_pack_body=PACK,
    )  # fmt: skip
    await stage.phase(run.run_id, "RUNNING")
    await stage.world.end_attempt(run.run_id, 1, Reason.COMPLETED, last_committed=checkpoint(3))
    evaluating = await stage.phase(run.run_id, "EVALUATING")
    spent = EvaluationExhausted(
        evaluation_id=evaluating.evaluation_id, message="crashed 3 times.", exhausted_at=stage.world.clock.now()
    )
    await stage.world.end_evaluation(run.run_id, spent)
    held = await stage.phase(run.run_id, "HELD")
    assert held.reason == "EVALUATION_EXHAUSTED"
    assert stage.world.run_facts(run.run_id).count("AttemptPlaced") == 1


async def test_a_held_run_is_released_once_and_its_evaluation_is_ordered_again(stage):
    request = dataset_service_pb2.RegisterDatasetRequest(request_id=uuid7(), project="demo", manifest=MANIFEST)
    await stage.datasets.RegisterDataset(request, Caller())
    run = await stage.submit(
        SPEC + 'evaluation: {model: "m.model:build"}\n',
        datasets=["digits"], evaluation_pack="tiny", evaluation_pack_body=PACK,
    )  # fmt: skip
    await stage.phase(run.run_id, "RUNNING")
    await stage.world.end_attempt(run.run_id, 1, Reason.COMPLETED, last_committed=checkpoint(3))
    evaluating = await stage.phase(run.run_id, "EVALUATING")
    spent = EvaluationExhausted(
        evaluation_id=evaluating.evaluation_id, message="crashed 3 times.", exhausted_at=stage.world.clock.now()
    )
    await stage.world.end_evaluation(run.run_id, spent)
    await stage.phase(run.run_id, "HELD")
    asked = pb.ReleaseRunRequest(name=run.run_id, request_id=uuid7(), reason="the judge is back", validate_only=True)
    assert (await stage.runs.ReleaseRun(asked, Caller())).phase == (await stage.phase(run.run_id, "HELD")).phase
    asked.validate_only = False
    await stage.runs.ReleaseRun(asked, Caller())
    await stage.runs.ReleaseRun(asked, Caller())
    await stage.phase(run.run_id, "EVALUATING")
    facts = stage.world.run_facts(run.run_id)
    assert (facts.count("RunReleased"), facts.count("FinalEvaluationOrdered")) == (1, 2)
    await stage.world.end_evaluation(run.run_id, spent)
    await stage.phase(run.run_id, "HELD")
    with pytest.raises(CommandRejected, match="request_id"):
        await stage.runs.ReleaseRun(pb.ReleaseRunRequest(name=run.run_id, reason="x"), Caller())


async def test_only_a_held_run_is_released_and_the_refusal_is_on_record(stage):
    run = await stage.submit()
    await stage.phase(run.run_id, "RUNNING")
    asked = pb.ReleaseRunRequest(name=run.run_id, request_id=uuid7(), reason="hurry")
    with pytest.raises(CommandRejected) as refused:
        await stage.runs.ReleaseRun(asked, Caller("eve"))
    assert refused.value.reason == "NOT_HELD"
    last = stage.world.run_commits(run.run_id)[-1]
    assert (last.facts[0].command, last.actor) == ("ReleaseRun", "eve")


async def test_a_run_out_of_memory_is_placed_with_half_its_micro_batch(stage):
    spec = SPEC.replace("{lr: 1e-3}", "{batch: 8, passes: 1}")
    run = await stage.submit(spec + "tunable: {micro_batch: batch, accumulation: passes}\n")
    await stage.phase(run.run_id, "RUNNING")
    await stage.world.end_attempt(run.run_id, 1, Reason.DEVICE_OOM)
    await stage.until(lambda: stage.state(run.run_id).attempt == 2)
    shown = await stage.runs.GetRun(pb.GetRunRequest(name=run.run_id), Caller())
    assert shown.shape.hyperparameters_json == '{"batch":4,"passes":2}'
    assert [(one.ledger, one.spent, one.budget) for one in shown.ledgers] == [
        ("DEVICE_OOM", 1, 3), ("ceiling", 1, 8), ("max_attempts", 2, 50),
    ]  # fmt: skip


async def test_a_smaller_gang_starts_when_the_whole_one_is_not_to_be_had(stage):
    first = await stage.submit(SPEC.replace("world_size: 2", "world_size: 3"))
    await stage.phase(first.run_id, "RUNNING")
    elastic = "world_size: {min: 1, max: 2}, world_size_wait_s: 2"
    second = await stage.submit(SPEC.replace("world_size: 2", elastic))
    await stage.phase(second.run_id, "RUNNING")
    placed = stage.state(second.run_id).placed
    assert (len(placed.ranks), placed.shape.world_size) == (1, 1)
    assert placed.queue_seconds >= 2
    assert placed.changes[0].field == "topology.world_size"


async def test_a_bad_spec_leaves_one_refusal_and_the_same_body_the_same_answer(stage):
    run_id = uuid7()
    for _ in range(2):
        with pytest.raises(CommandRejected) as refused:
            await stage.submit(SPEC.replace("compute: small", "compute: smal"), run_id)
        assert [violation.field for violation in refused.value.violations] == ["compute"]
    assert stage.world.run_facts(run_id) == ["RunRefused"]
    run = await stage.runs.GetRun(pb.GetRunRequest(name=run_id), Caller())
    assert run.violations[0].field == "compute"
    assert run.spec.project == ""


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"a: [", "not valid YAML"),
        (b"a: 1\na: 2\n", "stands twice"),
        (b"x" * 2_000_000, "bytes"),
    ],
    ids=["not UTF-8", "not YAML", "duplicate key", "too large"],
)
async def test_what_can_not_be_read_is_refused_by_name(stage, config, words):
    run_id = uuid7()
    request = pb.SubmitRunRequest(request_id=run_id, config=config, code_archive_digest=stage.world.code)
    with pytest.raises(CommandRejected, match=words) as refused:
        await stage.runs.SubmitRun(request, Caller())
    assert refused.value.violations[0].field == "config"
    assert stage.world.run_facts(run_id) == ["RunRefused"]


async def test_the_same_request_id_with_another_body_is_refused_on_record(stage):
    run = await stage.submit()
    same = await stage.submit(run_id=run.run_id)
    assert same.run_id == run.run_id
    with pytest.raises(CommandRejected) as refused:
        await stage.submit(SPEC + "seed: 5\n", run.run_id)
    assert refused.value.reason == "ALREADY_EXISTS"
    assert "CommandRefused" in stage.world.run_facts(run.run_id)
    assert stage.world.run_facts(run.run_id).count("RunSubmitted") == 1


async def test_validate_only_appends_nothing(stage):
    run_id = uuid7()
    run = await stage.submit(run_id=run_id, validate_only=True)
    assert run.spec.compute.compute_class == "small"
    with pytest.raises(CommandRejected):
        await stage.submit("kind: x\n", run_id, validate_only=True)
    assert stage.world.run_facts(run_id) == []
    with pytest.raises(NotFound):
        await stage.runs.GetRun(pb.GetRunRequest(name=run_id), Caller())


async def test_a_request_id_that_is_no_uuid7_is_refused(stage):
    with pytest.raises(CommandRejected, match="UUIDv7"):
        await stage.submit(run_id="1")


async def test_cancel_waits_for_the_attempt_and_is_refused_once_ended(stage):
    run = await stage.submit()
    await stage.phase(run.run_id, "RUNNING")
    request = pb.CancelRunRequest(name=run.run_id[:13], request_id=uuid7(), reason="enough")
    assert (await stage.runs.CancelRun(request, Caller())).phase == (await stage.phase(run.run_id, "RUNNING")).phase
    await stage.runs.CancelRun(request, Caller())
    await stage.world.end_attempt(run.run_id, 1, Reason.CANCELLED_BY_USER)
    cancelled = await stage.phase(run.run_id, "CANCELLED")
    assert cancelled.message == "by ada: enough"
    assert stage.world.run_facts(run.run_id).count("CancelRequested") == 1
    with pytest.raises(CommandRejected) as refused:
        await stage.runs.CancelRun(pb.CancelRunRequest(name=run.run_id, request_id=uuid7()), Caller("eve"))
    assert refused.value.reason == "RUN_ENDED"
    last = stage.world.run_commits(run.run_id)[-1]
    assert (last.facts[0].command, last.actor) == ("CancelRun", "eve")


async def test_cancel_needs_a_request_id(stage):
    run = await stage.submit()
    with pytest.raises(CommandRejected, match="request_id"):
        await stage.runs.CancelRun(pb.CancelRunRequest(name=run.run_id), Caller())


async def test_a_gang_waits_for_capacity_and_says_so(stage):
    first = await stage.submit(SPEC.replace("world_size: 2", "world_size: 4"))
    await stage.phase(first.run_id, "RUNNING")
    second = await stage.submit(SPEC.replace("world_size: 2", "world_size: 1"))
    third = await stage.submit()
    await stage.until(lambda: third.run_id in stage.opening.parts.board.waits)
    waiting = await stage.phase(second.run_id, "QUEUED")
    assert waiting.reason == "WaitingForQuota"
    assert (await stage.phase(third.run_id, "QUEUED")).reason == "WaitingForTurn"
    pool = await stage.pools.GetPool(pool_service_pb2.GetPoolRequest(name="pools/local"), Caller())
    assert (pool.reachable, pool.cpus, pool.cpus_free, pool.running_attempts) == (True, 4.0, 0.0, 1)
    await stage.world.end_attempt(first.run_id, 1, Reason.COMPLETED)
    await stage.phase(second.run_id, "RUNNING")
    await stage.phase(third.run_id, "RUNNING")


async def test_more_ranks_than_the_pool_has_are_refused_with_the_number(stage):
    with pytest.raises(CommandRejected, match="room for 4"):
        await stage.submit(SPEC.replace("world_size: 2", "world_size: 5"))
