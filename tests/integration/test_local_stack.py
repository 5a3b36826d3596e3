"""Two real stacks side by side (Kafka, Ray, chDB), killed in every way and found whole again."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import clickhouse_connect
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from click.testing import CliRunner
from trackway.cli.local import status as status_command
from trackway.local.down import down
from trackway.local.processes import end_processes, stack_processes
from trackway.local.ray_head import ray_env, temp_folder
from trackway.local.spec import StackOptions
from trackway.local.state import StackRecord, StateFolder, read_endpoints, read_record
from trackway.local.status import ChildState, ChildStatus, read_status
from trackway.local.up import up
from trackway_common.errors import CommandRejected, Unavailable
from trackway_common.kafka_topics import ensure_topics, topic_settings
from trackway_common.settings import KafkaSettings
from trackway_common.topics import RUNS, TOPICS, Topic

OPTIONS = StackOptions(cpus=4, only=frozenset({"kafka", "clickhouse", "ray"}))
RESTART_S = 40.0


@dataclass(frozen=True)
class Stack:
    folder: StateFolder
    record: StackRecord

    def processes(self) -> tuple[int, ...]:
        return tuple(process.pid for process in stack_processes(self.record.stack_id))

    def children(self) -> dict[str, ChildStatus]:
        return {child.name: child for child in read_status(self.folder).children}

    def pids(self) -> dict[str, int]:
        """Of the supervisor and of each child."""
        record = read_record(self.folder)
        assert record is not None
        assert record.supervisor is not None
        children = {name: child.process.pid for name, child in self.children().items() if child.process}
        return children | {"supervisor": record.supervisor.pid}

    def kill_everything(self) -> None:
        """SIGKILL to all processes, to the supervisor first, so that it starts none again."""
        sessions = [child.process for child in self.children().values() if child.process]
        self.kill_supervisor()
        end_processes(partial(stack_processes, self.record.stack_id, sessions=sessions), grace_s=0)

    def kill_children(self) -> dict[str, int]:
        pids = {name: child.process.pid for name, child in self.children().items() if child.process}
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
        return pids

    def kill_supervisor(self) -> None:
        record = read_record(self.folder)
        assert record is not None
        assert record.supervisor is not None
        os.kill(record.supervisor.pid, signal.SIGKILL)
        reap(record.supervisor.pid)


def reap(pid: int) -> None:
    """The supervisor is this process's child here, and a zombie until it is waited for."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stack, Stack]]:
    folders = [StateFolder(tmp_path_factory.mktemp(name)) for name in ("a", "b")]
    try:
        with ThreadPoolExecutor() as pool:
            records = list(pool.map(lambda folder: up(folder, OPTIONS), folders))
        yield tuple(Stack(folder, record) for folder, record in zip(folders, records, strict=True))  # type: ignore[misc]
    finally:
        for folder in folders:
            down(folder)


@pytest.fixture
def first(stacks: tuple[Stack, Stack]) -> Stack:
    return stacks[0]


@pytest.fixture
def second(stacks: tuple[Stack, Stack]) -> Stack:
    return stacks[1]


async def append(stack: Stack, value: bytes) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=stack.record.endpoints["kafka"], acks="all", enable_idempotence=True)
    async with producer:
        await producer.send_and_wait(RUNS, value=value, key=b"run", partition=3)


async def records(stack: Stack) -> list[bytes]:
    async with AIOKafkaConsumer(bootstrap_servers=stack.record.endpoints["kafka"]) as consumer:
        partition = TopicPartition(RUNS, 3)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        end = (await consumer.end_offsets([partition]))[partition]
        found: list[bytes] = []
        while len(found) < end:
            fetched = await consumer.getmany(timeout_ms=2000)
            found += [record.value for batch in fetched.values() for record in batch]
        return found


def clickhouse(stack: Stack, sql: str) -> object:
    host, port = stack.record.endpoints["clickhouse"].removeprefix("http://").split(":")
    with clickhouse_connect.get_client(host=host, port=int(port)) as client:
        return client.command(sql)


def write_facts(stack: Stack, name: str) -> None:
    asyncio.run(append(stack, name.encode()))
    clickhouse(stack, "CREATE TABLE facts (name String) ENGINE = MergeTree ORDER BY name")
    clickhouse(stack, f"INSERT INTO facts VALUES ('{name}')")


def has_facts(stack: Stack, name: str) -> bool:
    return asyncio.run(records(stack)) == [name.encode()] and clickhouse(stack, "SELECT name FROM facts") == name


def until_restarted(stack: Stack, killed: dict[str, int]) -> None:
    deadline = time.monotonic() + RESTART_S
    while time.monotonic() < deadline:
        children = stack.children()
        if all(
            child.state is ChildState.READY and child.process and child.process.pid != killed[name]
            for name, child in children.items()
        ):
            return
        time.sleep(0.1)
    pytest.fail(f"not restarted: {stack.children()}")


ACTOR = """
import ray
ray.init(address=ADDRESS, _node_ip_address="127.0.0.1", namespace="trackway", log_to_driver=False)
@ray.remote(num_cpus=1)
class Rank:
    def ok(self): return True
assert ray.cluster_resources()["CPU"] == 4
assert ray.get(Rank.options(name="rank", lifetime="detached").remote().ok.remote())
"""


def leave_a_detached_actor(stack: Stack) -> None:
    environment = os.environ | ray_env(stack.folder)
    code = ACTOR.replace("ADDRESS", repr(stack.record.endpoints["ray"]))
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_two_stacks_are_side_by_side(first: Stack, second: Stack) -> None:
    assert not set(first.record.ports.values()) & set(second.record.ports.values())
    write_facts(first, "first")
    write_facts(second, "second")
    assert has_facts(first, "first")
    assert has_facts(second, "second")
    leave_a_detached_actor(second)
    assert first.folder.ray_token.stat().st_mode & 0o777 == 0o600
    assert read_endpoints(first.folder.root) == first.record.endpoints


def test_topics_are_as_the_table_says(first: Stack) -> None:
    settings = KafkaSettings(bootstrap=first.record.endpoints["kafka"])
    assert asyncio.run(ensure_topics(settings)) == (), "all are there"
    described = asyncio.run(describe(settings.bootstrap))
    assert {name: partitions for name, (partitions, _) in described.items()} == {t.name: t.partitions for t in TOPICS}
    for topic in TOPICS:
        assert described[topic.name][1].items() >= topic_settings(topic, 1).items()
    with pytest.raises(CommandRejected, match="has 12 partitions and needs 7"):
        asyncio.run(ensure_topics(settings, [Topic(name=RUNS, partitions=7, retention=None)]))


async def describe(bootstrap: str) -> dict[str, tuple[int, dict[str, str]]]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        names = [topic.name for topic in TOPICS]
        partitions = {found["topic"]: len(found["partitions"]) for found in await admin.describe_topics()}
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        (response,) = await admin.describe_configs(resources)
        configs = {resource[3]: {entry[0]: entry[1] for entry in resource[4]} for resource in response.resources}
        return {name: (partitions[name], configs[name]) for name in names}
    finally:
        await admin.close()


def test_second_up_attaches(first: Stack) -> None:
    before = first.children()
    again = up(first.folder, OPTIONS)
    assert again == first.record
    assert first.children() == before


def test_status_is_printed_and_exits_0_when_ready(first: Stack) -> None:
    done = CliRunner().invoke(status_command, ["--state", str(first.folder.root), "-o", "json"])
    assert done.exit_code == 0
    assert '"state": "ready"' in done.output


def test_killed_children_come_back_with_their_data(second: Stack) -> None:
    killed = second.kill_children()
    until_restarted(second, killed)
    assert {name: child.restarts for name, child in second.children().items()} == dict.fromkeys(killed, 1)
    assert "SIGKILL" in second.folder.log_of("supervisor").read_text()
    assert has_facts(second, "second")


def test_down_after_the_supervisor_was_killed_leaves_nothing(second: Stack) -> None:
    leave_a_detached_actor(second)
    second.kill_supervisor()
    states = {child.state for child in read_status(second.folder).children}
    assert states == {ChildState.ORPHANED}
    pids = second.processes()
    assert len(pids) > 5, "Kafka, chDB and Ray's family live on"
    stopped = down(second.folder)
    assert (stopped.was_running, stopped.leftovers >= len(pids)) == (False, True)
    assert second.processes() == ()
    assert not [pid for pid in pids if is_running(pid)]
    assert not temp_folder(second.record.stack_id).exists()
    assert read_endpoints(second.folder.root) == {}
    assert down(second.folder).leftovers == 0


def test_a_living_ray_is_ended_by_the_supervisor_after_the_one_that_was_killed(first: Stack) -> None:
    before = first.pids()
    first.kill_supervisor()
    for name in ("kafka", "clickhouse"):
        os.kill(before[name], signal.SIGKILL)
    assert is_running(before["ray"])
    assert_starts_again(first, before)


def test_everything_killed_starts_again_without_losing_a_fact(first: Stack) -> None:
    before = first.pids()
    family = {before["supervisor"], *first.processes()}
    assert set(before.values()) < family
    first.kill_everything()
    assert not [pid for pid in family if is_running(pid)]
    assert_starts_again(first, before)


def assert_starts_again(stack: Stack, before: dict[str, int]) -> None:
    """All parts are new processes, and whatever they were told before is still there."""
    record = up(stack.folder, OPTIONS)
    assert record.stack_id == stack.record.stack_id
    assert record.ports["kafka"] == stack.record.ports["kafka"]
    again = Stack(stack.folder, record)
    now = again.pids()
    assert now.keys() == before.keys()
    assert not set(now.values()) & set(before.values())
    assert not [pid for pid in before.values() if is_running(pid)]
    assert has_facts(again, "first")


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_child_that_is_late_is_named_with_its_log(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    folder.clickhouse.symlink_to("/proc")  # a folder in which nobody can write
    try:
        with pytest.raises(Unavailable) as late:
            up(folder, StackOptions(cpus=4, only=frozenset({"clickhouse"})), timeout_s=4)
    finally:
        assert down(folder).was_running
    assert str(late.value).startswith("not ready after 4 s: clickhouse\nclickhouse (")
    assert str(folder.log_of("clickhouse")) in str(late.value)


def test_two_ups_at_once_start_one_stack(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    options = StackOptions(cpus=4, only=frozenset({"clickhouse"}))
    try:
        with ThreadPoolExecutor() as pool:
            records = list(pool.map(lambda _: up(folder, options), range(2)))
        assert records[0] == records[1]
        assert len(stack_processes(records[0].stack_id)) == 1
    finally:
        assert down(folder).was_running
