"""``trackway train submit`` against a fake: what is sent, what is printed, every exit code."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest
import yaml
from trackway_common.errors import CommandRejected, FieldViolation, Unavailable
from trackway_common.ids import is_uuid7
from trackway_proto.v1 import run_service_pb2
from trackway_proto.v1.vocabulary_pb2 import RunPhase, Violation

from tests.integration.cli_harness import RUN, SPEC, CommandLine, fake, spec, trackway
from tests.integration.fake_trackway import FakeTrackway

__all__ = ["fake", "spec", "trackway"]

ENDS = {"SUCCEEDED": 0, "FAILED": 1, "CANCELLED": 1, "HELD": 1, "REFUSED": 2}


def _to(phase: str) -> list[tuple[str, str]]:
    return [("RunSubmitted", "SUBMITTED"), ("RunQueued", "QUEUED"), ("AttemptPlaced", "RUNNING"), ("End", phase)]


def test_everything_the_server_needs_is_sent(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    flags = ["--dataset", "stdlib@sha256:ab:2.0", "--dataset", "extra", "--compute", "local-cpu-2x"]
    result = trackway("train", "submit", "--config", str(spec), *flags, "--evaluation-pack", "tiny")
    assert result.exit_code == 0, result.stderr
    [sent] = fake.requests("SubmitRun")
    assert is_uuid7(sent.request_id)
    assert sent.request_id in result.stdout
    assert sent.config == SPEC
    assert list(sent.datasets) == ["stdlib@sha256:ab:2.0", "extra"]
    assert (sent.compute, sent.evaluation_pack, sent.code_requested) == ("local-cpu-2x", "tiny", ".")
    assert sent.evaluation_pack_body == b"kind: EvaluationPack\n"
    assert not sent.validate_only
    with tarfile.open(fileobj=io.BytesIO(fake.blobs[sent.code_archive_digest])) as tar:
        assert tar.getnames() == ["packs/tiny.yaml", "run.yaml", "train.py"]


def test_a_clone_sends_what_the_earlier_run_was_given_and_no_folder(trackway: CommandLine, fake: FakeTrackway) -> None:
    spec_digest = _stored(fake, b'{"project":"demo","datasets":["stdlib"],"compute":["a","b"]}')
    pack_digest = _stored(fake, b'{"kind":"EvaluationPack"}')
    fake.add_run(RUN, _to("FAILED"))
    given = fake.runs[RUN].spec
    given.spec_digest, given.seed, given.seed_drawn = spec_digest, 77, True
    given.evaluation_pack.name, given.evaluation_pack.digest = "tiny", pack_digest
    given.code.archive_digest, given.code.requested, given.code.git_commit = "sha256:code", "examples/x", "f" * 40
    given.datasets.add(name="stdlib", requested="stdlib", manifest_digest="sha256:dd", weight=2.0)
    result = trackway("train", "submit", "--clone", RUN[:8], "--validate-only")
    assert result.exit_code == 0, result.stderr
    [sent] = fake.requests("SubmitRun")
    assert sent.request_id != RUN
    assert json.loads(sent.config) == {"project": "demo", "datasets": ["stdlib"], "compute": ["a", "b"], "seed": 77}
    assert list(sent.datasets) == ["stdlib@sha256:dd:2"]
    assert (sent.code_archive_digest, sent.code_requested, sent.git_commit) == ("sha256:code", "examples/x", "f" * 40)
    assert sent.evaluation_pack_body == b'{"kind":"EvaluationPack"}'
    assert (sent.compute, sent.evaluation_pack, sent.validate_only) == ("", "", True)
    assert fake.requests("PutBlob") == []


@pytest.mark.parametrize("flags", [[], ["--config", "run.yaml", "--clone", RUN]])
def test_a_spec_or_an_earlier_run_is_given_and_not_both(trackway: CommandLine, flags: list[str]) -> None:
    result = trackway("train", "submit", *flags)
    assert result.exit_code == 2
    assert "--clone" in result.stderr


def _stored(fake: FakeTrackway, data: bytes) -> str:
    digest = "sha256:" + hashlib.sha256(data).hexdigest()
    fake.blobs[digest] = data
    return digest


def test_code_that_is_stored_is_not_sent_again(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    for _ in range(2):
        assert trackway("train", "submit", "--config", str(spec)).exit_code == 0
    assert len(fake.requests("PutBlob")) == 1
    first, second = fake.requests("SubmitRun")
    assert first.code_archive_digest == second.code_archive_digest
    assert first.request_id != second.request_id


def test_a_large_archive_goes_in_chunks(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    (spec.parent / "weights.bin").write_bytes(bytes(range(256)) * (5 << 12))
    assert trackway("train", "submit", "--config", str(spec)).exit_code == 0
    [sent] = fake.requests("SubmitRun")
    assert len(fake.blobs[sent.code_archive_digest]) > 5 << 20


def test_the_given_request_id_is_the_runs(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    printed = trackway.json("train", "submit", "--config", str(spec), "--request-id", RUN)
    assert (printed["run_id"], printed["phase"]) == (RUN, "QUEUED")
    assert fake.requests("SubmitRun")[0].request_id == RUN


def test_validate_only_says_so_and_follows_nothing(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    result = trackway("train", "submit", "--config", str(spec), "--validate-only", "--follow")
    assert result.exit_code == 0
    assert "Nothing was started" in result.stderr
    assert fake.requests("SubmitRun")[0].validate_only
    assert fake.requests("WatchRun") == []


@pytest.mark.parametrize(("phase", "code"), ENDS.items())
def test_follow_returns_the_runs_code(
    trackway: CommandLine, fake: FakeTrackway, spec: Path, phase: str, code: int
) -> None:
    fake.answers["facts"] = _to(phase)
    if phase == "REFUSED":
        fake.answers["SubmitRun"] = run_service_pb2.Run(run_id=RUN, phase=RunPhase.RUN_PHASE_QUEUED)
        fake.answers["facts"] = _to(phase)
    result = trackway("train", "submit", "--config", str(spec), "--follow", "--request-id", RUN)
    assert result.exit_code == code, result.stderr
    assert "AttemptPlaced happened" in result.stdout
    assert f"Run {RUN} {phase}" in result.stderr


@pytest.mark.parametrize(("output", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_follow_prints_one_document_at_the_end(
    trackway: CommandLine, fake: FakeTrackway, spec: Path, output: str, load: object
) -> None:
    fake.answers["facts"] = _to("SUCCEEDED")
    result = trackway("train", "submit", "--config", str(spec), "--follow", "-o", output)
    assert result.exit_code == 0
    assert load(result.stdout)["phase"] == "SUCCEEDED"  # type: ignore[operator]
    assert "RunQueued happened" in result.stderr


def test_a_refusal_names_fields_and_what_to_do(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    fake.errors["SubmitRun"] = CommandRejected(
        "2 inputs are wrong",
        violations=(
            FieldViolation(field="topology.world_size", description="8 ranks, but local-cpu-2x has 2; write at most 2"),
            FieldViolation(field="modle_family", description="modle_family: unknown; did you mean model_family?"),
        ),
    )
    result = trackway("train", "submit", "--config", str(spec), "--follow")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines() == [
        "refused: 2 inputs are wrong",
        "topology.world_size: 8 ranks, but local-cpu-2x has 2; write at most 2",
        "modle_family: unknown; did you mean model_family?",
        "Nothing was started. Correct what is named above and try again.",
    ]


def test_an_answer_that_holds_violations_is_a_refusal(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    wrong = Violation(field="compute", description="unknown class")
    fake.answers["SubmitRun"] = run_service_pb2.Run(run_id=RUN, phase=RunPhase.RUN_PHASE_REFUSED, violations=[wrong])
    result = trackway("train", "submit", "--config", str(spec))
    assert result.exit_code == 2
    assert "compute: unknown class" in result.stderr


def test_another_body_under_the_same_id_is_refused(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    fake.errors["SubmitRun"] = CommandRejected("request_id was used with another config", reason="ALREADY_EXISTS")
    result = trackway("train", "submit", "--config", str(spec), "--request-id", RUN)
    assert result.exit_code == 2
    assert "leave --request-id out" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--config", "gone.yaml"], "config: gone.yaml: No such file"),
        ([], "give one of them"),
        (["--config", "run.yaml", "--nonsense"], "No such option"),
        (["--config", "run.yaml", "--request-id", "abc"], "no UUID of version 7"),
        (["--config", "run.yaml", "-o", "xml"], "xml"),
    ],
)
def test_wrong_usage_asks_no_server(trackway: CommandLine, fake: FakeTrackway, arguments: list[str], says: str) -> None:
    result = trackway("train", "submit", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr
    assert fake.calls == []


@pytest.mark.parametrize("body", [b"a: [1\n", b"\xff\xff", b"# " + b"x" * (10 << 20)])
def test_a_config_that_can_not_be_read_asks_no_server(
    trackway: CommandLine, fake: FakeTrackway, spec: Path, body: bytes
) -> None:
    spec.write_bytes(body)
    result = trackway("train", "submit", "--config", str(spec))
    assert result.exit_code == 2
    assert result.stderr.startswith("config: ")
    assert fake.calls == []


def test_code_that_can_not_be_sent_is_refused(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    (spec.parent / "out").symlink_to("/etc")
    result = trackway("train", "submit", "--config", str(spec))
    assert result.exit_code == 2
    assert "code.path: out is a link that leaves the code folder" in result.stderr
    assert fake.requests("SubmitRun") == []


def test_an_outage_says_how_to_submit_again_safely(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    fake.errors["SubmitRun"] = Unavailable("the log is away")
    result = trackway("train", "submit", "--config", str(spec), "--request-id", RUN)
    assert result.exit_code == 3
    assert f"submit with request id {RUN} again" in result.stderr
    assert {request.request_id for request in fake.requests("SubmitRun")} == {RUN}


def test_a_service_that_is_away_is_exit_3(trackway: CommandLine, fake: FakeTrackway, spec: Path) -> None:
    fake.stop()
    result = trackway("train", "submit", "--config", str(spec))
    assert result.exit_code == 3
    assert "trackway status" in result.stderr


def test_no_stack_is_exit_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: Path) -> None:
    from click.testing import CliRunner
    from trackway.cli.main import cli

    monkeypatch.delenv("TRACKWAY_ENDPOINT", raising=False)
    result = CliRunner().invoke(cli, ["train", "submit", "--config", str(spec), "--state", str(tmp_path / "none")])
    assert result.exit_code == 3
    assert "trackway up" in result.stderr
