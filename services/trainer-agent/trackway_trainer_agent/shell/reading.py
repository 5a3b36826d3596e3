"""From a rank's records to the domain's words."""

from __future__ import annotations

from datetime import UTC, datetime

from trackway_common.events import LogLine, MetricValue, PhaseSeconds, ResourceSample, StepMetrics, TerminationReason

from trackway_trainer_agent.domain.observations import (
    DeviceHealth,
    ErrorSeen,
    ErrorSource,
    Filesystem,
    Frame,
    HostFacts,
    LaunchProblem,
    LaunchStage,
    RankExit,
    RuleHit,
)
from trackway_trainer_agent.domain.saves import PartCaptured, PartFailed, PartPersisted
from trackway_trainer_agent.worker import records


def rank_exit(rank: int, host: str, seen: records.TrainerExited) -> RankExit:
    """How a rank's program ended."""
    return RankExit(
        rank=rank,
        node=host,
        exit_code=seen.exit_code,
        signal=seen.signal,
        error=_error(seen.error) if seen.error is not None else None,
        stderr_tail=seen.stderr_tail,
        last_step=seen.last_step,
        peak_memory_bytes=seen.peak_memory_bytes,
        host=_host(seen),
        rule=_rule(seen.rule) if seen.rule is not None else None,
        # By the clock that also dates its error: the agent's may be another.
        stop_sent_at_ms=seen.stopped_at_ms,
        ended_at_ms=seen.ended_at_ms,
        monotonic_ns=seen.monotonic_ns,
    )


def launch_problem(rank: int, host: str, seen: records.LaunchFailed) -> LaunchProblem:
    """Why a rank's program never ran."""
    return LaunchProblem(stage=LaunchStage(seen.stage), message=seen.message, at_ms=seen.at_ms, rank=rank, node=host)


def part_captured(rank: int, seen: records.CheckpointCaptured) -> PartCaptured:
    """A rank's part of a checkpoint is in memory."""
    return PartCaptured(
        rank=rank,
        step=seen.step,
        nonce=seen.nonce,
        size_bytes=seen.size_bytes,
        blocked_seconds=seen.blocked_seconds,
        parts=seen.world_size,
        phases=phase_seconds(rank, seen.phases),
    )


def phase_seconds(rank: int, seen: records.PhasesMeasured | None) -> PhaseSeconds | None:
    """Where a rank's time went; None where it opened no session."""
    if seen is None:
        return None
    return PhaseSeconds(
        rank=rank,
        restore_seconds=seen.phases.restore_seconds,
        data_wait_seconds=seen.phases.data_wait_seconds,
        checkpoint_stall_seconds=seen.phases.checkpoint_stall_seconds,
        step_seconds=seen.phases.step_seconds,
        measured_at=datetime.fromtimestamp(seen.at_ms / 1000, UTC),
    )


def part_persisted(rank: int, seen: records.CheckpointPersisted) -> PartPersisted:
    """A rank's part of a checkpoint is on disk."""
    return PartPersisted(
        rank=rank,
        step=seen.step,
        nonce=seen.nonce,
        size_bytes=seen.size_bytes,
        parts=seen.world_size,
        metrics=seen.metrics,
    )


def part_failed(rank: int, seen: records.CheckpointAbandoned) -> PartFailed:
    """A rank's part of a checkpoint is lost."""
    return PartFailed(rank=rank, step=seen.step, nonce=seen.nonce, why=seen.why)


def metric_values(values: tuple[tuple[str, float], ...]) -> tuple[MetricValue, ...]:
    """Named numbers as events have them."""
    return tuple(MetricValue(name=name, value=value) for name, value in values)


def step_metrics(number: int, seen: records.StepMetrics) -> StepMetrics:
    """A step's metrics under their record number."""
    return StepMetrics(record=number, step=seen.step, at_ms=seen.at_ms, values=metric_values(seen.values))


def log_line(number: int, seen: records.LogLine) -> LogLine:
    """A line of output under its record number."""
    return LogLine(record=number, at_ms=seen.at_ms, stream=seen.stream, text=seen.text, step=seen.step)


def resource_sample(number: int, seen: records.ResourceSample) -> ResourceSample:
    """A measurement under its record number."""
    return ResourceSample(record=number, at_ms=seen.at_ms, memory_bytes=seen.memory_bytes, cpu_percent=seen.cpu_percent)


def _host(seen: records.TrainerExited) -> HostFacts:
    host = seen.host
    return HostFacts(
        oom_kills=seen.oom_kills,
        last_oom_kill_at_ms=seen.last_oom_kill_at_ms,
        memory_bound_bytes=host.memory_bound_bytes,
        killed_over_bound_bytes=host.killed_over_bound_bytes,
        filesystems=tuple(
            Filesystem(mount=one.mount, free_bytes=one.free_bytes, total_bytes=one.total_bytes)
            for one in host.filesystems
        ),
        kernel_lines=host.kernel_lines,
        devices=tuple(DeviceHealth(device=one.device, problem=one.problem) for one in host.devices),
    )


def _rule(seen: records.RuleMatched) -> RuleHit:
    reason = TerminationReason[seen.reason]
    return RuleHit(reason=reason, rule=seen.rule, matched=seen.matched, at_ms=seen.at_ms)


def _error(seen: records.ErrorRecord) -> ErrorSeen:
    printed = seen.source == "stderr"
    return ErrorSeen(
        source=ErrorSource.PRINTED if printed else ErrorSource.PROCESS,
        exception_type=seen.exception_type,
        message=seen.message,
        chain=seen.chain,
        frames=tuple(Frame(file=frame.file, line=frame.line, function=frame.function) for frame in seen.frames),
        trackway_reason=seen.trackway_reason,
        step=seen.step,
        monotonic_ns=seen.monotonic_ns,
        at_ms=seen.at_ms,
    )
