"""The commands that only look: what is asked, and that every output format holds the answer."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from google.protobuf.struct_pb2 import Struct
from trackway_common.errors import NotFound
from trackway_proto.v1 import (
    agent_service_pb2,
    checkpoint_service_pb2,
    dataset_service_pb2,
    evaluation_facts_pb2,
    evaluation_service_pb2,
    goodput_pb2,
    history_service_pb2,
    pool_service_pb2,
    run_facts_pb2,
    spec_pb2,
    vocabulary_pb2,
)
from trackway_proto.v1.vocabulary_pb2 import TerminationReason

from tests.integration.cli_harness import RUN, CommandLine, fake, trackway
from tests.integration.fake_trackway import FakeTrackway

__all__ = ["fake", "trackway"]

REF = vocabulary_pb2.CheckpointRef(run_id=RUN, step=40, epoch=1, nonce="abc", manifest_digest="sha256:m", slot=3)


def _struct(**fields: object) -> Struct:
    struct = Struct()
    struct.update(fields)
    return struct


ATTEMPT = history_service_pb2.Attempt(
    name=f"projects/p/runs/{RUN}/attempts/2",
    run_id=RUN,
    attempt=2,
    state="ENDED",
    reason=vocabulary_pb2.TERMINATION_REASON_UNKNOWN_KILL,
    domain=vocabulary_pb2.FAILURE_DOMAIN_INFRA,
    pool="local",
    gpu_seconds=12.5,
    first_step=40,
    last_step=55,
    resumed_from=REF,
    receipt=_struct(host="node-1", ranks=2),
)


def test_attempts(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.answers["ListAttempts"] = history_service_pb2.ListAttemptsResponse(attempts=[ATTEMPT])
    fake.answers["GetAttempt"] = ATTEMPT
    [listed] = trackway.json("attempt", "list", RUN)
    assert (listed["reason"], listed["receipt"]["host"]) == ("UNKNOWN_KILL", "node-1")
    assert f"{RUN}/2  ENDED  UNKNOWN_KILL  local" in trackway("attempt", "list").stdout
    assert [request.parent for request in fake.requests("ListAttempts")] == [RUN, "projects/-"]
    shown = trackway("attempt", "show", f"{RUN}/2").stdout
    assert "step 40, s40-e1-abc" in shown
    assert "receipt.host" in shown
    assert fake.requests("GetAttempt")[0].name == f"{RUN}/2"
    refused = trackway("attempt", "show", RUN)
    assert refused.exit_code == 2
    assert f"{RUN}/1" in refused.stderr


def test_an_attempt_is_judged_again_by_its_agent(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.answers["ReclassifyAttempt"] = agent_service_pb2.ReclassifyAttemptResponse(
        before=TerminationReason.TERMINATION_REASON_UNKNOWN_KILL,
        version_before="2026-11-1",
        reason=TerminationReason.TERMINATION_REASON_HOST_OOM,
        classifier_version="2026-11-3",
        confidence=0.95,
        cause="The kernel killed rank 1.",
        recorded=True,
    )
    said = trackway("attempt", "reclassify", f"{RUN}/2").stdout
    assert "UNKNOWN_KILL (classifier 2026-11-1)" in said
    assert "HOST_OOM (classifier 2026-11-3)" in said
    looked = trackway.json("attempt", "reclassify", f"{RUN}/2")
    assert (looked["before"], looked["reason"], looked["recorded"]) == ("UNKNOWN_KILL", "HOST_OOM", True)
    assert [(request.run_id, request.attempt) for request in fake.requests("ReclassifyAttempt")] == [(RUN, 2)] * 2
    refused = trackway("attempt", "reclassify", RUN)
    assert refused.exit_code == 2
    assert f"{RUN}/1" in refused.stderr


def test_explain(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.answers["Explain"] = history_service_pb2.Explanation(
        text="Rank 1 was killed.\n",
        markdown="# Rank 1\n",
        detail=_struct(reason="UNKNOWN_KILL"),
        records_behind=3,
        postmortem="# Incident\n",
    )
    plain = trackway("explain", f"{RUN}/2")
    assert (plain.exit_code, plain.stdout) == (0, "Rank 1 was killed.\n")
    assert "3 records behind" in plain.stderr
    assert trackway("explain", RUN, "-o", "markdown").stdout == "# Rank 1\n"
    assert trackway.json("explain", RUN) == {"reason": "UNKNOWN_KILL"}
    assert yaml.safe_load(trackway("explain", RUN, "-o", "yaml").stdout) == {"reason": "UNKNOWN_KILL"}
    assert trackway("explain", RUN, "--md").stdout == "# Rank 1\n"
    assert json.loads(trackway("explain", RUN, "--json").stdout) == {"reason": "UNKNOWN_KILL"}
    assert trackway("explain", RUN, "--postmortem").stdout == "# Incident\n"
    assert [request.name for request in fake.requests("Explain")][:2] == [f"{RUN}/2", RUN]
    assert trackway("explain", RUN, "-o", "table").stdout == "Rank 1 was killed.\n"
    assert trackway("explain", RUN, "-o", "csv").exit_code == 2


def test_goodput(trackway: CommandLine, fake: FakeTrackway) -> None:
    parts = [
        goodput_pb2.GoodputPart(name="productive", seconds=60.0, share=0.6),
        goodput_pb2.GoodputPart(name="stall", seconds=0.0, share=0.0),
        goodput_pb2.GoodputPart(name="lost", seconds=40.0, share=0.4),
    ]
    attempt = goodput_pb2.AttemptGoodput(
        attempt=1, state="ENDED", reason="UNKNOWN_KILL", accelerators=2, wall_seconds=50.0, seconds=100.0, parts=parts
    )
    found = goodput_pb2.Goodput(
        run_id=RUN,
        attempts=[attempt],
        seconds=100.0,
        queue_seconds=2.5,
        parts=parts,
        largest_loss="lost",
        hint="Save more often.",
    )
    fake.answers["GetGoodput"] = goodput_pb2.GetGoodputResponse(goodput=found, records_behind=1)
    shown = trackway("train", "goodput", RUN)
    assert shown.stdout.splitlines() == [
        "ATTEMPT  ENDED BY      SECONDS  PRODUCTIVE    ROLLED BACK",
        "1        UNKNOWN_KILL  100.0    60.0 (60.0%)  40.0 (40.0%)",
        "all                    100.0    60.0 (60.0%)  40.0 (40.0%)",
        "",
        "In the queue: 2.5 s.",
        "Largest loss: rolled back, 40.0 (40.0%). Save more often.",
        "Attempt 1 opened no session: waits for data, stalls and restores can't be told from training there, and all "
        "that was kept counts as productive.",
    ]
    assert "1 records behind" in shown.stderr
    whole = trackway.json("train", "goodput", f"{RUN}/1")
    assert (whole["attempts"][0]["parts"][2]["name"], whole["attempts"][0]["parts"][2]["share"]) == ("lost", 0.4)
    assert yaml.safe_load(trackway("train", "goodput", RUN, "-o", "yaml").stdout) == whole
    assert [request.name for request in fake.requests("GetGoodput")] == [RUN, f"{RUN}/1", RUN]


def test_goodput_of_a_run_that_waits(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.answers["GetGoodput"] = goodput_pb2.GetGoodputResponse(goodput=goodput_pb2.Goodput(run_id=RUN))
    shown = trackway("train", "goodput", RUN)
    assert (shown.exit_code, shown.stdout, shown.stderr) == (0, "", "No attempt was placed yet.\n")


def test_short_names_are_resolved_by_the_scheduler(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunQueued", "QUEUED")])
    fake.answers["Explain"] = history_service_pb2.Explanation(text="x")
    assert trackway("explain", "019a/1").exit_code == 0
    assert fake.requests("Explain")[0].name == f"{RUN}/1"


def test_sql(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.answers["Query"] = [
        history_service_pb2.QueryResponse(columns=["reason", "hours"], rows_json=['["A", 1.5]']),
        history_service_pb2.QueryResponse(rows_json=['["B", null]'], truncated=True),
    ]
    assert trackway.json("sql", "select 1") == [{"reason": "A", "hours": 1.5}, {"reason": "B", "hours": None}]
    result = trackway("sql", "select 1", "--max-rows", "2")
    assert result.stdout == "reason  hours\nA       1.5\nB\n"
    assert "more rows" in result.stderr
    assert fake.requests("Query")[-1].max_rows == 2


def test_checkpoints(trackway: CommandLine, fake: FakeTrackway) -> None:
    checkpoint = checkpoint_service_pb2.Checkpoint(
        name=f"projects/p/runs/{RUN}/checkpoints/s40-e1-abc",
        ref=REF,
        phase=vocabulary_pb2.CHECKPOINT_PHASE_COMMITTED,
        parent=vocabulary_pb2.CheckpointRef(run_id=RUN, step=30, epoch=1, nonce="aaa"),
        size_bytes=3 << 20,
        world_size=2,
    )
    fake.answers["ListCheckpoints"] = checkpoint_service_pb2.ListCheckpointsResponse(checkpoints=[checkpoint])
    fake.answers["GetCheckpoint"] = checkpoint
    assert "s40-e1-abc  COMMITTED  s30-e1-aaa  40    2      3.0 MiB" in trackway("checkpoint", "list", RUN).stdout
    assert trackway.json("checkpoint", "show", f"{RUN}/40")["ref"]["step"] == 40
    assert fake.requests("GetCheckpoint")[0].name == f"{RUN}/checkpoints/40"


def test_a_damaged_checkpoint_is_exit_1(trackway: CommandLine, fake: FakeTrackway) -> None:
    good = checkpoint_service_pb2.VerifyCheckpointResponse(ok=True, files=4, size_bytes=10)
    fake.answers["VerifyCheckpoint"] = good
    checked = trackway.json("checkpoint", "verify", f"{RUN}/40")
    assert checked == {"ok": True, "files": 4, "size_bytes": 10, "problems": []}
    bad = checkpoint_service_pb2.VerifyCheckpointResponse(problems=["rank 1 model: xxh3 differs"])
    fake.answers["VerifyCheckpoint"] = bad
    result = trackway("checkpoint", "verify", f"{RUN}/40")
    assert result.exit_code == 1
    assert "xxh3 differs" in result.stdout


def test_evaluations(trackway: CommandLine, fake: FakeTrackway) -> None:
    metric = evaluation_facts_pb2.TaskMetric(name="accuracy", value=0.9, stderr=0.01, stderr_method="sem", samples=100)
    gate = evaluation_facts_pb2.GateVerdict(
        task="digits", metric="accuracy", op=">=", threshold=0.8, value=0.9, blocking=True, verdict=1
    )
    task = evaluation_facts_pb2.TaskResult(
        task="digits",
        task_digest="sha256:task",
        decoding_digest="sha256:greedy",
        planned=100,
        scored=99,
        errored=1,
        metrics=[metric],
    )
    evaluation = evaluation_service_pb2.Evaluation(
        evaluation_id="e1",
        run_id=RUN,
        phase=vocabulary_pb2.EVALUATION_PHASE_COMPLETED,
        pack=spec_pb2.EvaluationPackRef(name="digits", digest="sha256:abc"),
        checkpoint=REF,
        result=evaluation_facts_pb2.EvaluationCompleted(
            verdict=vocabulary_pb2.VERDICT_PASSED,
            tasks=[task],
            shards=[
                evaluation_facts_pb2.SampleShard(
                    task="digits", kind="samples", digest="sha256:raw", rows=99, size_bytes=2048
                )
            ],
            gates=[gate],
        ),
    )
    fake.answers["ListEvaluations"] = evaluation_service_pb2.ListEvaluationsResponse(evaluations=[evaluation])
    fake.answers["GetEvaluation"] = evaluation
    assert "PASSED" in trackway("evaluation", "list", RUN).stdout
    shown = trackway("evaluation", "show", "e1").stdout
    assert "99 of 100 scored, 1 errored" in shown
    assert "0.9 ± 0.01 (sem), n=100" in shown
    assert {"sha256:task", "sha256:greedy"} <= set(shown.split())
    assert "digits samples: 99 rows, 2.0 KiB, sha256:raw" in shown
    assert "PASSED digits accuracy: 0.9 >= 0.8 (blocking)" in shown
    assert trackway.json("evaluation", "show", "e1")["result"]["gates"][0]["verdict"] == "PASSED"


def test_pools(trackway: CommandLine, fake: FakeTrackway) -> None:
    offer = run_facts_pb2.ComputeOffer(compute_class="local-cpu-2x", accelerator_kind="cpu", max_ranks=2)
    pool = pool_service_pb2.Pool(name="pools/local", reachable=True, cpus=8, cpus_free=6, offers=[offer])
    fake.answers["ListPools"] = pool_service_pb2.ListPoolsResponse(pools=[pool])
    assert "local  yes        local-cpu-2x  6 of 8" in trackway("pool", "list").stdout
    assert trackway.json("pool", "list")[0]["offers"][0]["compute_class"] == "local-cpu-2x"


def test_a_dataset_snapshot_is_registered_and_shown(trackway: CommandLine, fake: FakeTrackway, tmp_path: Path) -> None:
    for i in range(30):
        (tmp_path / f"m{i}.py").write_text(f"x = {i}\n")
    (tmp_path / "skip.txt").write_text("no")
    fake.answers["RegisterDataset"] = dataset_service_pb2.Dataset(
        name="projects/demo/datasets/stdlib@sha256:d",
        dataset="stdlib",
        manifest_digest="sha256:d",
        files=30,
        size_bytes=200,
        splits=["heldout", "train"],
    )
    command = ("dataset", "snapshot", "stdlib", str(tmp_path), "--include", "*.py", "--split", "heldout=0.2")
    result = trackway(*command, "--project", "demo")
    assert result.exit_code == 0, result.stderr
    [request] = fake.requests("RegisterDataset")
    manifest = json.loads(request.manifest)
    assert (request.project, manifest["name"], manifest["root"]) == ("demo", "stdlib", str(tmp_path))
    assert len(manifest["files"]) == 30
    assert "heldout" in result.stdout
    assert str(tmp_path) in result.stdout
    assert trackway.json(*command)["manifest_digest"] == "sha256:d"
    first, second = fake.requests("RegisterDataset")
    assert first.manifest == second.manifest


def test_datasets_are_shown_with_their_manifest(trackway: CommandLine, fake: FakeTrackway) -> None:
    name = "projects/demo/datasets/d@sha256:d"
    dataset = dataset_service_pb2.Dataset(name=name, dataset="d", manifest_digest="sha256:d", manifest=b'{"name":"d"}')
    fake.answers["GetDataset"] = dataset
    fake.answers["ListDatasets"] = dataset_service_pb2.ListDatasetsResponse(datasets=[dataset])
    assert trackway.json("dataset", "show", "d")["manifest"] == {"name": "d"}
    assert "sha256:d" in trackway("dataset", "list").stdout
    assert "demo" in trackway("dataset", "list").stdout
    for asked in (("d@12", "--project", "demo"), (name,)):
        assert trackway("dataset", "show", *asked).exit_code == 0
    wanted = [request.name for request in fake.requests("GetDataset")]
    assert wanted == ["projects/-/datasets/d", "projects/demo/datasets/d@12", name]


def test_snapshots_of_nothing_are_refused(trackway: CommandLine, fake: FakeTrackway, tmp_path: Path) -> None:
    (tmp_path / "empty.py").touch()
    result = trackway("dataset", "snapshot", "d", str(tmp_path))
    assert result.exit_code == 2
    assert "path: all 1 files are empty: empty.py" in result.stderr
    assert trackway("dataset", "snapshot", "d", str(tmp_path / "gone")).exit_code == 2
    assert trackway("dataset", "snapshot", "d", str(tmp_path), "--split", "x").exit_code == 2
    assert fake.calls == []


def test_what_is_not_there_is_exit_2(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.errors["GetEvaluation"] = NotFound("there is no evaluation e9")
    result = trackway("evaluation", "show", "e9")
    assert (result.exit_code, result.stderr) == (2, "refused: there is no evaluation e9\n")


def test_empty_listings_are_still_documents(trackway: CommandLine, fake: FakeTrackway) -> None:
    fake.answers["ListPools"] = pool_service_pb2.ListPoolsResponse()
    assert trackway.json("pool", "list") == []
    assert yaml.safe_load(trackway("pool", "list", "-o", "yaml").stdout) == []
