"""Everything a user can get wrong: the field is named, the exit code is 2, only a refusal is appended."""

from __future__ import annotations

import pytest
import yaml
from trackway_common.ids import uuid7

from tests.support.facts import accepted_commits
from tests.support.runs import spec


def refused(stack, *arguments: str) -> str:
    """What a refused command prints."""
    answer = stack.cli(*arguments)
    assert answer.code == 2, (answer.code, answer.out, answer.err)
    return answer.out + answer.err


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"modle_family": "x"}, ["modle_family", "model_family"]),
        ({"model_family": None}, ["model_family"]),
        ({"seed": "seven"}, ["seed"]),
        ({"topology": {"world_size": "2"}}, ["topology.world_size"]),
        ({"topology": {"world_size": 500, "strategy": "ddp"}}, ["topology.world_size", "500"]),
        ({"compute": "moon-1x"}, ["compute", "local-cpu-2x"]),
        ({"datasets": ["nothing"]}, ["datasets", "nothing"]),
        ({"datasets": ["numbers@sha256:" + "0" * 64]}, ["datasets"]),
        ({"runtime": {"kind": "image", "image": "x:latest"}}, ["runtime", "image"]),
        ({"runtime": {"kind": "lock"}}, ["runtime", "lock"]),
        ({"evaluation_pack": "no-such-pack"}, ["evaluation_pack", "no-such-pack"]),
        ({"entrypoint": {"function": "no colon"}}, ["entrypoint.function"]),
        ({"retry": {"bad_luck": {"max": 3}}}, ["retry", "bad_luck"]),
        ({"hyperparameters": {"big": 2**60}}, ["hyperparameters"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_wrong_field_is_named(stack, numbers, tmp_path, changes, says):
    printed = refused(stack, "train", "submit", "--config", str(spec(tmp_path, **changes)))
    for word in says:
        assert word in printed


def test_every_wrong_field_is_named_at_once(stack, numbers, tmp_path):
    config = spec(tmp_path, seed="x", compute="moon", model_family=None)
    printed = refused(stack, "train", "submit", "--config", str(config))
    assert all(word in printed for word in ("seed", "compute", "model_family"))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"a: [", "line 1"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"x" * 10_000_000, "1048576"),
        (b"- a\n- b\n", "mapping"),
        (b"seed: 1\nseed: 2\n", "twice"),
        (b"lr: .nan\n", "finite"),
        (b"", "config"),
    ],
    ids=["yaml", "utf8", "10MB", "list", "duplicate", "nan", "empty"],
)
def test_a_config_that_is_none(stack, numbers, tmp_path, body, says):
    path = tmp_path / "run.yaml"
    path.write_bytes(body)
    assert says in refused(stack, "train", "submit", "--config", str(path))


def test_a_config_that_is_not_there(stack, tmp_path):
    assert "nowhere.yaml" in refused(stack, "train", "submit", "--config", str(tmp_path / "nowhere.yaml"))


def test_a_pack_that_names_no_such_task_kind(stack, numbers, tmp_path):
    pack = {
        "apiVersion": "trackway/v1",
        "kind": "EvaluationPack",
        "name": "odd",
        "evaluator": {"adapter": "builtin"},
        "tasks": [{"id": "t", "version": "1", "kind": "telepathy", "dataset": "numbers", "split": "train"}],
    }
    (tmp_path / "odd.yaml").write_text(yaml.safe_dump(pack))
    printed = refused(stack, "train", "submit", "--config", str(spec(tmp_path, evaluation_pack="odd")))
    assert "telepathy" in printed
    assert "kind" in printed


def test_only_the_refusal_is_appended(stack, numbers, tmp_path):
    request_id = uuid7()
    config = spec(tmp_path, compute="moon-1x")
    refused(stack, "train", "submit", "--config", str(config), "--request-id", request_id)
    facts = [fact for c in accepted_commits(stack.kafka) if request_id in c.stream for fact in c.facts]
    assert [type(fact).__name__ for fact in facts] == ["RunRefused"]
    assert facts[0].violations[0].field == "compute"


def test_validate_only_appends_nothing(stack, numbers, tmp_path):
    request_id = uuid7()
    command = ("train", "submit", "--config", str(spec(tmp_path)), "--request-id", request_id, "--validate-only")
    assert stack.cli(*command).code == 0
    assert [c for c in accepted_commits(stack.kafka) if request_id in c.stream] == []


def test_the_same_request_twice_is_one_run_and_another_body_is_refused(stack, numbers, tmp_path):
    request_id = uuid7()
    config = spec(tmp_path, hyperparameters={"steps": 1})
    command = ("train", "submit", "--config", str(config), "--request-id", request_id, "-o", "json")
    first, second = stack.cli(*command), stack.cli(*command)
    assert (first.code, second.code) == (0, 0), second.err
    submitted = [
        fact
        for c in accepted_commits(stack.kafka)
        if c.stream == f"runs/{request_id}"
        for fact in c.facts
        if type(fact).__name__ == "RunSubmitted"
    ]
    assert len(submitted) == 1
    other = spec(tmp_path, hyperparameters={"steps": 2})
    assert "request_id" in refused(stack, "train", "submit", "--config", str(other), "--request-id", request_id)


@pytest.mark.parametrize(
    "sql",
    [
        "insert into training_attempts values (1)",
        "select * from file('/etc/passwd')",
        "select file('/etc/passwd')",
        "drop table events",
        "select 1; select 2",
        "selec 1",
    ],
)
def test_sql_that_is_not_a_plain_select_is_refused(stack, sql):
    assert refused(stack, "sql", sql)


def test_names_that_are_not_there(stack):
    assert "no run" in refused(stack, "train", "show", uuid7())
    assert "no run" in refused(stack, "explain", f"{uuid7()}/1")
    assert "nothing" in refused(stack, "dataset", "show", "nothing")


def test_a_service_that_is_away_is_exit_3(stack):
    answer = stack.cli("train", "list", "--endpoint", "127.0.0.1:9")
    assert answer.code == 3
    assert "127.0.0.1:9" in answer.out + answer.err
