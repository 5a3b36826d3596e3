"""Variables that nobody reads are told at a service's start; those of other parts are not."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from trackway_checkpointer.settings import CheckpointerSettings
from trackway_common.process import warn_of_unknown
from trackway_common.settings import LogSettings, ServiceSettings
from trackway_common.variables import ELSEWHERE, unknown_variables
from trackway_evaluator.settings import EvaluatorSettings
from trackway_observer.settings import ObserverSettings
from trackway_observer.watch.settings import WatchSettings
from trackway_scheduler.settings import SchedulerSettings
from trackway_trainer_agent.settings import TrainerAgentSettings
from trackway_trainer_agent.worker.rank_spec import ResumeTarget

from tests.unit.trainer_agent.test_sdk_desk import SPEC
from tests.unit.trainer_agent.test_trainer_environment import environment

SERVICES = (
    CheckpointerSettings,
    EvaluatorSettings,
    ObserverSettings,
    SchedulerSettings,
    TrainerAgentSettings,
    WatchSettings,
)


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("TRACKWAY_STAET", "TRACKWAY_STATE"),
        ("TRACKWAY_KAFKA_BOOTSTRAP", "TRACKWAY_KAFKA__BOOTSTRAP"),
        ("TRACKWAY_KAFAK__SASL_PASSWORD", "TRACKWAY_KAFKA__SASL_PASSWORD"),
        ("TRACKWAY_STATE__DIR", "TRACKWAY_STATE"),
        ("TRACKWAY_ENDPOINTS", "TRACKWAY_ENDPOINT"),
        ("trackway_rcp__listen", "TRACKWAY_RPC__LISTEN"),
        ("TRACKWAY_FOO", ""),
    ],
)
def test_an_unknown_variable_is_told_with_the_closest_known_one(name: str, closest: str) -> None:
    assert unknown_variables(ServiceSettings, ["PATH", "TRACKWAY_STATE", "TRACKWAY_KAFKA__BOOTSTRAP", name]) == {
        name: closest
    }


@pytest.mark.parametrize("service", SERVICES)
def test_one_environment_may_serve_every_service(service: type[LogSettings]) -> None:
    fields = {name for kind in SERVICES for name in kind.model_fields}
    assert unknown_variables(service, [f"TRACKWAY_{name.upper()}" for name in fields]) == {}


def test_what_a_trainer_is_given_is_known() -> None:
    spec = replace(SPEC, resume=ResumeTarget(step=1, path="p", manifest_digest="sha256:m", run_id=SPEC.run_id))
    given = environment(spec, resume=Path("/resume"), TRACKWAY_STACK_ID="s")
    assert {"TRACKWAY_RUN_ID", "TRACKWAY_RESUME_FROM", "TRACKWAY_RESUME_STEP"} < given.keys()
    assert unknown_variables(ServiceSettings, given) == {}


def test_the_list_names_only_what_no_service_shares() -> None:
    assert ELSEWHERE.isdisjoint(name.upper() for name in ServiceSettings.model_fields)


def test_a_warning_names_the_variable_and_never_its_value(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("TRACKWAY_KAFKA_SASL_PASSWORD", "quiet-harbour")
    with caplog.at_level(logging.WARNING):
        warn_of_unknown(ServiceSettings)
    (record,) = caplog.records
    assert vars(record)["variable"] == "TRACKWAY_KAFKA_SASL_PASSWORD"
    assert vars(record)["closest"] == "TRACKWAY_KAFKA__SASL_PASSWORD"
    assert "quiet-harbour" not in str(vars(record))
