"""Observations as the log keeps them, there and back: what was judged once can be judged again."""

from __future__ import annotations

from typing import assert_never

from trackway_common import events as e

from trackway_trainer_agent.domain.observations import (
    ClusterLost,
    DeviceHealth,
    ErrorSeen,
    ErrorSource,
    Filesystem,
    Frame,
    Hang,
    HostFacts,
    LaunchProblem,
    LaunchStage,
    NodeLeaving,
    Observation,
    RankExit,
    RankLost,
    RankSilent,
    RuleHit,
    StopOrdered,
    StuckRank,
    SubstrateCause,
)


def recorded(seen: Observation) -> e.Observation:
    """The observation as a receipt holds it."""
    match seen:
        case RankExit():
            return e.Observation(rank_exit=_exit(seen))
        case RankLost():
            lost = e.RankLostSeen(
                rank=seen.rank, node=seen.node, cause=seen.cause.value, text=seen.text, at_ms=seen.at_ms
            )
            return e.Observation(rank_lost=lost)
        case ClusterLost():
            cluster = e.ClusterLostSeen(
                expected_id=seen.expected_id, found_id=seen.found_id, silent_s=seen.silent_s, at_ms=seen.at_ms
            )
            return e.Observation(cluster_lost=cluster)
        case LaunchProblem():
            return e.Observation(launch_problem=_launch(seen))
        case StopOrdered():
            return e.Observation(
                stop_ordered=e.StopOrderedSeen(reason=seen.reason, why=seen.why, at_ms=seen.at_ms),
            )
        case RankSilent():
            return e.Observation(rank_silent=e.RankSilentSeen(rank=seen.rank, at_ms=seen.at_ms))
        case Hang():
            return e.Observation(hang=_hang(seen))
        case NodeLeaving():
            leaving = e.NodeLeavingSeen(
                node=seen.node, cause=seen.cause.value, text=seen.text, at_ms=seen.at_ms, ranks=seen.ranks
            )
            return e.Observation(node_leaving=leaving)
        case _ as never:
            assert_never(never)


def observed(kept: e.Observation) -> Observation | None:
    """What a record says was seen; ``None`` for one of a later schema."""
    if (exited := kept.rank_exit) is not None:
        return _exit_again(exited)
    if (lost := kept.rank_lost) is not None:
        cause = SubstrateCause(lost.cause)
        return RankLost(rank=lost.rank, node=lost.node, cause=cause, text=lost.text, at_ms=lost.at_ms)
    if (cluster := kept.cluster_lost) is not None:
        return ClusterLost(
            expected_id=cluster.expected_id, found_id=cluster.found_id, silent_s=cluster.silent_s, at_ms=cluster.at_ms
        )
    if (problem := kept.launch_problem) is not None:
        return _launch_again(problem)
    if (stop := kept.stop_ordered) is not None:
        return StopOrdered(reason=stop.reason, why=stop.why, at_ms=stop.at_ms)
    if (silent := kept.rank_silent) is not None:
        return RankSilent(rank=silent.rank, at_ms=silent.at_ms)
    if (hang := kept.hang) is not None:
        return _hang_again(hang)
    if (leaving := kept.node_leaving) is not None:
        cause = SubstrateCause(leaving.cause)
        return NodeLeaving(node=leaving.node, cause=cause, text=leaving.text, at_ms=leaving.at_ms, ranks=leaving.ranks)
    return None


def _exit(seen: RankExit) -> e.RankExitSeen:
    return e.RankExitSeen(
        rank=seen.rank,
        node=seen.node,
        exit_code=seen.exit_code,
        signal=seen.signal,
        error=_error(seen.error) if seen.error is not None else None,
        stderr_tail=seen.stderr_tail,
        last_step=seen.last_step,
        peak_memory_bytes=seen.peak_memory_bytes,
        stop_sent_at_ms=seen.stop_sent_at_ms,
        ended_at_ms=seen.ended_at_ms,
        monotonic_ns=seen.monotonic_ns,
        host=_host(seen.host),
        rule=_rule(seen.rule) if seen.rule is not None else None,
    )


def _exit_again(kept: e.RankExitSeen) -> RankExit:
    return RankExit(
        rank=kept.rank,
        node=kept.node,
        exit_code=kept.exit_code,
        signal=kept.signal,
        error=_error_again(kept.error) if kept.error is not None else None,
        stderr_tail=kept.stderr_tail,
        last_step=kept.last_step,
        peak_memory_bytes=kept.peak_memory_bytes,
        stop_sent_at_ms=kept.stop_sent_at_ms,
        ended_at_ms=kept.ended_at_ms,
        monotonic_ns=kept.monotonic_ns,
        host=_host_again(kept.host) if kept.host is not None else HostFacts(),
        rule=_rule_again(kept.rule) if kept.rule is not None else None,
    )


def _error(seen: ErrorSeen) -> e.ErrorSeen:
    return e.ErrorSeen(
        source=seen.source.value,
        exception_type=seen.exception_type,
        message=seen.message,
        chain=seen.chain,
        frames=_frames(seen.frames),
        trackway_reason=seen.trackway_reason,
        step=seen.step,
        monotonic_ns=seen.monotonic_ns,
        at_ms=seen.at_ms,
    )


def _error_again(kept: e.ErrorSeen) -> ErrorSeen:
    return ErrorSeen(
        source=ErrorSource(kept.source),
        exception_type=kept.exception_type,
        message=kept.message,
        chain=kept.chain,
        frames=_frames_again(kept.frames),
        trackway_reason=kept.trackway_reason,
        step=kept.step,
        monotonic_ns=kept.monotonic_ns,
        at_ms=kept.at_ms,
    )


def _host(seen: HostFacts) -> e.HostSeen:
    return e.HostSeen(
        oom_kills=seen.oom_kills,
        last_oom_kill_at_ms=seen.last_oom_kill_at_ms,
        memory_bound_bytes=seen.memory_bound_bytes,
        killed_over_bound_bytes=seen.killed_over_bound_bytes,
        filesystems=tuple(
            e.FilesystemSeen(mount=one.mount, free_bytes=one.free_bytes, total_bytes=one.total_bytes)
            for one in seen.filesystems
        ),
        kernel_lines=seen.kernel_lines,
        devices=tuple(e.DeviceSeen(device=one.device, problem=one.problem) for one in seen.devices),
    )


def _host_again(kept: e.HostSeen) -> HostFacts:
    return HostFacts(
        oom_kills=kept.oom_kills,
        last_oom_kill_at_ms=kept.last_oom_kill_at_ms,
        memory_bound_bytes=kept.memory_bound_bytes,
        killed_over_bound_bytes=kept.killed_over_bound_bytes,
        filesystems=tuple(
            Filesystem(mount=one.mount, free_bytes=one.free_bytes, total_bytes=one.total_bytes)
            for one in kept.filesystems
        ),
        kernel_lines=kept.kernel_lines,
        devices=tuple(DeviceHealth(device=one.device, problem=one.problem) for one in kept.devices),
    )


def _rule(seen: RuleHit) -> e.RuleHit:
    return e.RuleHit(reason=seen.reason, rule=seen.rule, matched=seen.matched, at_ms=seen.at_ms)


def _rule_again(kept: e.RuleHit) -> RuleHit:
    return RuleHit(reason=kept.reason, rule=kept.rule, matched=kept.matched, at_ms=kept.at_ms)


def _launch(seen: LaunchProblem) -> e.LaunchProblemSeen:
    return e.LaunchProblemSeen(
        stage=seen.stage.value,
        message=seen.message,
        at_ms=seen.at_ms,
        rank=seen.rank,
        node=seen.node,
        reason=seen.reason,
    )


def _launch_again(kept: e.LaunchProblemSeen) -> LaunchProblem:
    return LaunchProblem(
        stage=LaunchStage(kept.stage),
        message=kept.message,
        at_ms=kept.at_ms,
        rank=kept.rank,
        node=kept.node,
        reason=kept.reason,
    )


def _hang(seen: Hang) -> e.HangSeen:
    ranks = tuple(
        e.StuckRankSeen(
            rank=one.rank,
            node=one.node,
            last_step=one.last_step,
            silent_s=one.silent_s,
            frames=_frames(one.frames),
            stacks_source=one.stacks_source,
            stacks_digest=one.stacks_digest,
        )
        for one in seen.ranks
    )
    return e.HangSeen(ranks=ranks, limit_s=seen.limit_s, stepped=seen.stepped, at_ms=seen.at_ms)


def _hang_again(kept: e.HangSeen) -> Hang:
    ranks = tuple(
        StuckRank(
            rank=one.rank,
            node=one.node,
            last_step=one.last_step,
            silent_s=one.silent_s,
            frames=_frames_again(one.frames),
            stacks_source=one.stacks_source,
            stacks_digest=one.stacks_digest,
        )
        for one in kept.ranks
    )
    return Hang(ranks=ranks, limit_s=kept.limit_s, stepped=kept.stepped, at_ms=kept.at_ms)


def _frames(seen: tuple[Frame, ...]) -> tuple[e.FrameSeen, ...]:
    return tuple(e.FrameSeen(file=frame.file, line=frame.line, function=frame.function) for frame in seen)


def _frames_again(kept: tuple[e.FrameSeen, ...]) -> tuple[Frame, ...]:
    return tuple(Frame(file=frame.file, line=frame.line, function=frame.function) for frame in kept)
