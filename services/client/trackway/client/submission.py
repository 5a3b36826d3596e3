"""What a submission sends: the spec's bytes as they are, the code's archive, and the evaluation pack."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from trackway_common.canonical import Json
from trackway_common.errors import CommandRejected, FieldViolation, Unavailable
from trackway_common.yaml_core import MAX_BYTES, load_yaml
from trackway_proto.v1.run_service_pb2 import Run, SubmitRunRequest
from trackway_proto.v1.run_service_pb2_grpc import RunServiceStub

from trackway.client.archive import write_archive
from trackway.client.blobs import upload
from trackway.client.calls import LONG_S, call
from trackway.client.git_state import GitState, git_state
from trackway.client.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """What replaces fields of the spec; empty leaves the spec's."""

    datasets: tuple[str, ...] = ()
    """Each ``NAME[@DIGEST][:WEIGHT]``."""
    compute: str = ""
    evaluation_pack: str = ""


NO_OVERRIDES = Overrides()


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What one submission is made of, before anything was sent."""

    config: bytes
    overrides: Overrides
    pack_body: bytes
    code_folder: Path | None
    """None when the spec's ``code`` is not what a client can read: the service says what is wrong with it."""
    code_requested: str
    code_digest: str = ""
    """Of an archive that is stored already; with it no folder is sent."""
    git: GitState = field(default_factory=GitState)


def read_submission(config: Path, overrides: Overrides) -> Submission:
    """Read the spec and what lies beside it.

    Raises:
        CommandRejected: the spec or the pack can't be read, is too large, not UTF-8 or not YAML.
    """
    body = read_small_file(config, "config")
    spec = load_yaml(body, name="config")
    fields: Mapping[str, Json] = spec if isinstance(spec, Mapping) else {}
    requested = _code_path(fields.get("code"))
    return Submission(
        config=body,
        overrides=overrides,
        pack_body=_pack_body(config, overrides.evaluation_pack or fields.get("evaluation_pack")),
        code_folder=None if requested is None else config.parent / requested,
        code_requested=requested or "",
    )


def submit(channel: grpc.Channel, submission: Submission, request: SubmitRunRequest, progress: Progress) -> Run:
    """Send the code archive unless it is stored, then the submission.

    Args:
        request: holds the request id; gets everything else.
    """
    request.MergeFrom(_request(channel, submission, progress))
    try:
        return call(RunServiceStub(channel).SubmitRun, request, LONG_S)
    except Unavailable as error:
        again = f"the run may have been accepted; submit with request id {request.request_id} again: it starts no other"
        raise Unavailable(f"{error}; {again}") from error


def read_small_file(path: Path, field: str) -> bytes:
    """Return a text file's bytes.

    Raises:
        CommandRejected: missing, unreadable, above 1 MiB or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        data.decode("utf-8")
    except OSError as error:
        raise _refused(field, f"{path}: {error.strerror}; name a file that can be read") from error
    except UnicodeDecodeError as error:
        if len(error.object) <= MAX_BYTES:
            raise _refused(field, f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from error
    if len(data) > MAX_BYTES:
        size_bytes = path.stat().st_size
        raise _refused(field, f"{path} is {size_bytes} bytes; at most {MAX_BYTES} are read. Is it the right file?")
    return data


def _request(channel: grpc.Channel, submission: Submission, progress: Progress) -> SubmitRunRequest:
    digest, git = submission.code_digest, submission.git
    if submission.code_folder is not None:
        digest = _send_code(channel, submission.code_folder, progress)
        git = git_state(submission.code_folder)
    return SubmitRunRequest(
        config=submission.config,
        datasets=submission.overrides.datasets,
        compute=submission.overrides.compute,
        evaluation_pack=submission.overrides.evaluation_pack,
        evaluation_pack_body=submission.pack_body,
        code_archive_digest=digest,
        code_requested=submission.code_requested,
        git_commit=git.commit,
        dirty_diff_digest=git.dirty_diff_digest,
    )


def _code_path(code: Json) -> str | None:
    match code:
        case None:
            return "."
        case {"path": str(path)}:
            return path
        case Mapping() if not code:
            return "."
    return None


def _pack_body(config: Path, name: Json) -> bytes:
    """Body of the pack's file beside the spec; empty when there is none and a registered one is meant."""
    if not isinstance(name, str) or not name or Path(name).name != name:
        return b""
    for candidate in (config.parent / "packs" / f"{name}.yaml", config.parent / f"{name}.yaml"):
        # A spec often has the name of its pack; it is not the pack.
        if candidate.is_file() and not candidate.samefile(config):
            return read_small_file(candidate, "evaluation_pack")
    return b""


def _send_code(channel: grpc.Channel, folder: Path, progress: Progress) -> str:
    with tempfile.TemporaryDirectory(prefix="trackway-") as scratch:
        archive = Path(scratch, "code.tar")
        with archive.open("wb") as to:
            write_archive(folder, to, progress)
        return upload(channel, archive, progress)


def _refused(field: str, description: str) -> CommandRejected:
    return CommandRejected(description, violations=(FieldViolation(field=field, description=description),))
