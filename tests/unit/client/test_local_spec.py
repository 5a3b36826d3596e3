"""The stack as data: dependencies, environment, Kafka's properties, the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest
from trackway.local import kafka
from trackway.local.maven import KAFKA_VERSION, deploy_file, libs_folder, require_tool
from trackway.local.ray_head import create_token, temp_folder
from trackway.local.spec import ChildSpec, Plan, StackOptions, levels, selected
from trackway.local.stack import CHILD_NAMES, PORT_NAMES, provide_catalogue, shared_env, stack_specs
from trackway.local.state import StateFolder
from trackway_common.errors import Unavailable
from trackway_common.yaml_core import load_yaml

STACK_ID = "0d777163-f5e9-420f-a503-e7137b999428"


async def never(_: object) -> bool:
    return False


def child(name: str, *needs: str) -> ChildSpec:
    return ChildSpec(name=name, argv=("true",), endpoint="", answers=never, depends_on=needs)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    folder = StateFolder(tmp_path)
    folder.create()
    ports = {name: 20_000 + i for i, name in enumerate(PORT_NAMES)}
    return Plan(folder=folder, stack_id=STACK_ID, ports=ports, options=StackOptions(cpus=4))


def test_levels_put_each_behind_what_it_needs() -> None:
    specs = [child("a"), child("b", "a"), child("c", "a", "b"), child("d")]
    assert levels(specs) == (frozenset("ad"), frozenset("b"), frozenset("c"))


def test_circle_of_dependencies_is_found() -> None:
    with pytest.raises(AssertionError, match="circle"):
        levels([child("a", "b"), child("b", "a")])


def test_selection_forgets_dependencies_that_are_left_out() -> None:
    (only,) = selected([child("a"), child("b", "a")], frozenset({"b"}))
    assert (only.name, only.depends_on) == ("b", ())


def test_stack_holds_every_part_and_services_wait_for_the_log(plan: Plan) -> None:
    specs = {spec.name: spec for spec in stack_specs(plan, Path("/libs"))}
    assert tuple(specs) == CHILD_NAMES
    services = [spec for spec in specs.values() if "trackway_" in " ".join(spec.argv)]
    assert len(services) == 5
    assert all("kafka" in spec.depends_on for spec in services)
    agent = specs["trainer-agent"]
    assert agent.argv[1:] == ("-m", "trackway_trainer_agent")
    assert agent.env["TRACKWAY_RPC__LISTEN"] == agent.endpoint
    assert agent.env["TRACKWAY_RAY__ADDRESS"] == specs["ray"].endpoint
    assert agent.env["RAY_AUTH_TOKEN_PATH"] == specs["ray"].env["RAY_AUTH_TOKEN_PATH"]
    assert agent.env["TRACKWAY_STORE__URL"] == f"file://{plan.folder.objects}"


def test_children_do_not_inherit_settings_for_another_cluster(plan: Plan) -> None:
    shell = {
        "PATH": "/bin",
        "RAY_ADDRESS": "elsewhere:6379",
        "TRACKWAY_KAFKA__SASL_USERNAME": "somebody",
        "TRACKWAY_TELEMETRY__LOG_LEVEL": "DEBUG",
    }
    assert shared_env(plan, shell) == {
        "PATH": "/bin",
        "TRACKWAY_TELEMETRY__LOG_LEVEL": "DEBUG",
        "TRACKWAY_STACK_ID": STACK_ID,
        "OMP_NUM_THREADS": "1",
    }


def test_kafka_advertises_the_ports_of_this_start(plan: Plan) -> None:
    properties = kafka.server_properties(plan, plan.folder.kafka / "data")
    lines = dict(line.split("=", 1) for line in properties.splitlines() if "=" in line and not line.startswith("#"))
    port, controller = plan.ports["kafka"], plan.ports["kafka-controller"]
    assert lines["advertised.listeners"] == f"PLAINTEXT://127.0.0.1:{port}"
    assert lines["controller.quorum.voters"] == f"1@127.0.0.1:{controller}"
    assert lines["log.dirs"] == str(plan.folder.kafka / "data")
    assert lines["auto.create.topics.enable"] == "false"


def test_folder_beyond_ascii_is_written_as_java_reads_it(plan: Plan) -> None:
    assert "log.dirs=/\\u00fc \\ud83d\\ude82\n" in kafka.server_properties(plan, Path("/ü 🚂"))


def test_folder_that_kafka_would_read_as_two_is_refused(plan: Plan) -> None:
    with pytest.raises(Unavailable, match="comma"):
        kafka.server_properties(plan, Path("/a,b"))


def test_cluster_id_is_what_kafka_takes() -> None:
    assert len(kafka.cluster_id(STACK_ID)) == 22
    assert not kafka.cluster_id("fbffffff-ffff-4fff-bfff-ffffffffffff").startswith("-"), "would be read as an option"


def test_pom_has_the_version_that_names_the_cache() -> None:
    assert f"<version>{KAFKA_VERSION}</version>" in deploy_file("pom.xml").read_text()
    assert libs_folder({}).name == f"kafka-{KAFKA_VERSION}"
    assert libs_folder({"TRACKWAY_KAFKA_LIBS": "/jars"}) == Path("/jars")


def test_missing_tool_is_named_with_the_package_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable, match=r"java was not found.*openjdk-17-jre-headless"):
        require_tool("java")
    with pytest.raises(Unavailable, match=r"mvn was not found.*maven"):
        require_tool("mvn")


def test_ray_sockets_fit_into_107_bytes() -> None:
    session = "session_2026-11-21_12-38-44_597461_1234567/sockets/plasma_store"
    assert len(str(temp_folder(STACK_ID) / session)) < 107


def test_token_is_private_and_kept(tmp_path: Path) -> None:
    token = tmp_path / "token"
    create_token(token)
    written = token.read_text()
    create_token(token)
    assert token.read_text() == written
    assert len(written) == 64
    assert token.stat().st_mode & 0o777 == 0o600


def test_default_catalogue_is_copied_once(plan: Plan) -> None:
    provide_catalogue(plan.folder)
    catalogue = load_yaml(plan.folder.catalogue.read_bytes(), name="catalogue")
    assert isinstance(catalogue, dict)
    names = [compute["name"] for compute in catalogue["classes"]]  # type: ignore[index, call-overload, union-attr]
    assert names == ["local-cpu-1x", "local-cpu-2x", "local-cpu-4x"]
    plan.folder.catalogue.write_text("mine")
    provide_catalogue(plan.folder)
    assert plan.folder.catalogue.read_text() == "mine"
