"""EvaluationService: names, pages, and what an evaluation shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import CheckpointRef, EvaluationPackRef, EvaluationPhase
from trackway_evaluator.domain.state import Evaluation, RunEvaluations
from trackway_evaluator.entrypoints.grpc_api import EvaluationApi
from trackway_evaluator.entrypoints.names import parse_parent
from trackway_proto.v1 import evaluation_service_pb2, vocabulary_pb2

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def evaluation(number: int, project: str = "demo") -> Evaluation:
    return Evaluation(
        evaluation_id=f"{number:02x}abcdef",
        pack=EvaluationPackRef(name="digits", digest="sha256:p"),
        checkpoint=CheckpointRef(run_id=f"run-{number}", step=40),
        project=project,
        model_family="vision",
        final=True,
        # Two share a moment, so that pages must also order by id.
        requested_at=NOW + timedelta(seconds=number // 2),
        phase=EvaluationPhase.REQUESTED,
        round=1,
    )


def states() -> Mapping[str, RunEvaluations]:
    projects = {3: "other"}
    return {
        f"evaluations/run-{n}": RunEvaluations(run_id=f"run-{n}", evaluations=(evaluation(n, projects.get(n, "demo")),))
        for n in range(5)
    }


API = EvaluationApi(states)


async def get(name: str) -> evaluation_service_pb2.Evaluation:
    return await API.GetEvaluation(evaluation_service_pb2.GetEvaluationRequest(name=name), None)


async def page(parent: str, size: int = 0, token: str = "") -> evaluation_service_pb2.ListEvaluationsResponse:
    request = evaluation_service_pb2.ListEvaluationsRequest(parent=parent, page_size=size, page_token=token)
    return await API.ListEvaluations(request, None)


@pytest.mark.parametrize("name", ["projects/demo/evaluations/02abcdef", "projects/-/evaluations/02", "02abc"])
async def test_found_by_name_and_by_prefix(name: str) -> None:
    found = await get(name)
    assert found.name == "projects/demo/evaluations/02abcdef"
    assert found.run_id == "run-2"
    assert found.phase == vocabulary_pb2.EVALUATION_PHASE_REQUESTED
    assert found.requested_at.ToDatetime(tzinfo=UTC) == NOW + timedelta(seconds=1)
    assert not found.HasField("result")


async def test_unknown_and_ambiguous_names_are_told_apart() -> None:
    with pytest.raises(NotFound):
        await get("projects/other/evaluations/02")
    with pytest.raises(CommandRejected, match="5 evaluations begin with '0'"):
        await get("0")


@pytest.mark.parametrize("name", ["", "projects/demo/runs/x", "projects//evaluations/x", "a/b"])
async def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(CommandRejected, match="names no evaluation"):
        await get(name)


async def test_pages_go_from_new_to_old_and_lose_nothing() -> None:
    first = await page("projects/-", 2)
    second = await page("projects/-", 2, first.next_page_token)
    third = await page("projects/-", 2, second.next_page_token)
    runs = [one.run_id for part in (first, second, third) for one in part.evaluations]
    assert runs == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    assert third.next_page_token == ""


async def test_parent_narrows() -> None:
    assert [one.run_id for one in (await page("projects/other")).evaluations] == ["run-3"]
    assert [one.run_id for one in (await page("run-1")).evaluations] == ["run-1"]
    assert [one.run_id for one in (await page("projects/demo/runs/run-1")).evaluations] == ["run-1"]
    assert len((await page("projects/absent")).evaluations) == 0


@pytest.mark.parametrize(("parent", "size", "token"), [("", 0, ""), ("projects/-", -1, ""), ("projects/-", 0, "zzz")])
async def test_bad_requests_name_the_field(parent: str, size: int, token: str) -> None:
    with pytest.raises(CommandRejected) as refused:
        await page(parent, size, token)
    assert refused.value.violations


def test_parents() -> None:
    assert parse_parent("projects/-/runs/r").run_id == "r"
    with pytest.raises(CommandRejected):
        parse_parent("projects/")
