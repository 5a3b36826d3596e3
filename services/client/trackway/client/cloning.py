"""An earlier run's inputs as a new submission: from its pinned spec and the blobs that it names, no folder needed."""

from __future__ import annotations

import json
from collections.abc import Callable

from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import DatasetRef

from trackway.client.git_state import GitState
from trackway.client.resources import Run
from trackway.client.submission import Overrides, Submission


def cloned_submission(run: Run, overrides: Overrides, blob: Callable[[str], bytes]) -> Submission:
    """Return what submits the same inputs: same code, data, configuration, seed and pack, by digest.

    Args:
        run: the earlier one.
        overrides: what differs.
        blob: gives the bytes of a digest.
    Raises:
        CommandRejected: the run was refused, or its spec is not stored any more.
    """
    spec = run.spec
    if spec is None or not spec.spec_digest:
        raise CommandRejected(f"run {run.run_id} was refused before its inputs were pinned; submit its spec again")
    try:
        submitted = json.loads(blob(spec.spec_digest))
        keeps_pack = spec.evaluation_pack.digest and not overrides.evaluation_pack
        pack = blob(spec.evaluation_pack.digest) if keeps_pack else b""
    except NotFound as error:
        raise CommandRejected(f"what run {run.run_id} was given is not stored any more: {error}") from error
    return Submission(
        # As submitted, overrides applied; the seed may have been drawn by the platform.
        config=json.dumps(submitted | {"seed": spec.seed}).encode(),
        overrides=Overrides(
            datasets=overrides.datasets or tuple(_pinned(data) for data in spec.datasets),
            compute=overrides.compute,
            evaluation_pack=overrides.evaluation_pack,
        ),
        pack_body=pack,
        code_folder=None,
        code_requested=spec.code.requested,
        code_digest=spec.code.archive_digest,
        git=GitState(commit=spec.code.git_commit or "", dirty_diff_digest=spec.code.dirty_diff_digest or ""),
    )


def _pinned(data: DatasetRef) -> str:
    weight = "" if data.weight == 1 else f":{data.weight:g}"
    return f"{data.name}@{data.manifest_digest}{weight}"
