"""Records as ranks of the tests report them."""

from __future__ import annotations

from trackway_trainer_agent.worker import records

FIRST_STEP_AT_MS = 1_767_225_601_000


def first_step(step: int = 1) -> records.FirstStepReported:
    return records.FirstStepReported(step=step, at_ms=FIRST_STEP_AT_MS)


def captured(
    nonce: str = "abcd",
    step: int = 10,
    blocked_seconds: float = 0.2,
    phases: records.PhasesMeasured | None = None,
    parts: int = 2,
) -> records.CheckpointCaptured:
    return records.CheckpointCaptured(
        step=step,
        nonce=nonce,
        size_bytes=100,
        blocked_seconds=blocked_seconds,
        world_size=parts,
        samples_consumed=320,
        metrics=(),
        at_ms=1,
        phases=phases,
    )


def persisted(nonce: str = "abcd", step: int = 10, parts: int = 2) -> records.CheckpointPersisted:
    return records.CheckpointPersisted(
        step=step,
        nonce=nonce,
        receipt_path="",
        size_bytes=100,
        seconds=0.1,
        world_size=parts,
        samples_consumed=320,
        metrics=(("loss", 0.5),),
        kind="session" if parts > 1 else "directory",
        at_ms=1,
    )


def reset_by_peer(at_ms: int = 0) -> records.ErrorRecord:
    return records.ErrorRecord(
        source="sdk",
        exception_type="RuntimeError",
        message="[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:4242",
        chain=(),
        frames=(),
        trackway_reason=None,
        step=12,
        monotonic_ns=None,
        at_ms=at_ms,
    )


def environment(digest: str) -> records.EnvironmentReported:
    return records.EnvironmentReported(
        python_version="3.11.7",
        torch_version="2.13.0",
        device="cpu",
        host="host-1",
        environment_digest=digest,
        report_json='{"distributions": {}}',
    )


def line(text: str, step: int = 3) -> records.LogLine:
    return records.LogLine(stream="stdout", text=text, step=step, at_ms=7)


def metrics(step: int, **values: float) -> records.StepMetrics:
    return records.StepMetrics(step=step, values=tuple(values.items()), at_ms=8)


def sample() -> records.ResourceSample:
    return records.ResourceSample(memory_bytes=5 << 20, cpu_percent=98.5, at_ms=9)
