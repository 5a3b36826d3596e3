"""What a hang says: who waits in a collective, and who did not come."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath

from trackway_common.events import Authority, CausalRole
from trackway_common.events import TerminationReason as Reason

from trackway_trainer_agent.domain.findings import Finding, fingerprint
from trackway_trainer_agent.domain.observations import Frame, Hang, StuckRank

_FRAMES_SHOWN = 4
_LIBRARIES = ("site-packages", "dist-packages", "lib/python")


def hang_findings(seen: Hang) -> tuple[Finding, ...]:
    """The root first, then where each other rank stood."""
    waiting = tuple(one for one in seen.ranks if waits_in_collective(one.frames))
    if not waiting:
        waiting = _most_wait_alike(seen.ranks)
    missing = tuple(one for one in seen.ranks if one not in waiting)
    blamed = _blamed(waiting, missing)
    reason = Reason.COLLECTIVE_TIMEOUT if waiting else Reason.STALLED
    at = blamed or seen.ranks[0]
    root = Finding(
        role=CausalRole.INITIATING,
        authority=Authority.HOST,
        source=_source(at),
        excerpt=_excerpt(at),
        at_ms=seen.at_ms,
        reason=reason,
        confidence=_confidence(at, waiting, missing if waiting else seen.ranks),
        cause=_cause(seen, waiting, blamed),
        fingerprint=fingerprint(reason.value, *_place(at)),
        rank=None if blamed is None else blamed.rank,
        node=None if blamed is None else blamed.node,
        decisive=True,
        blob_digest=at.stacks_digest,
    )
    return (root, *(_other(seen, one, waits=one in waiting) for one in seen.ranks if one is not at))


def waits_in_collective(frames: tuple[Frame, ...]) -> bool:
    """Tell whether a main thread stands in a collective of torch: its own frame is the innermost.

    DistributedDataParallel reduces inside the backward pass, whose Python side is ``_engine_run_backward``.
    """
    if not frames:
        return False
    innermost = frames[-1]
    in_torch = "/torch/distributed/" in innermost.file and "/torch/distributed/elastic/" not in innermost.file
    return in_torch or innermost.function == "_engine_run_backward"


def _most_wait_alike(ranks: tuple[StuckRank, ...]) -> tuple[StuckRank, ...]:
    """More than half of the ranks, at one call that may wait for a device, while others stand elsewhere; else nobody.

    On a device a collective only is enqueued: a rank waits for it where it next needs a result, as in ``loss.item()``,
    which has no frame of its own.
    """
    places = Counter(place for one in ranks if (place := _waits_on_device(one.frames)) is not None)
    if not places:
        return ()
    [(common, count)] = places.most_common(1)
    if count == len(ranks) or 2 * count <= len(ranks):
        return ()
    return tuple(one for one in ranks if _waits_on_device(one.frames) == common)


def _waits_on_device(frames: tuple[Frame, ...]) -> Frame | None:
    """The user's innermost frame, where it calls native code itself or through torch; torch's loaders wait for data."""
    if not frames:
        return None
    innermost = frames[-1].file
    in_torch = "/torch/" in innermost and "/torch/utils/data/" not in innermost
    own = _own(frames)
    return own[-1] if own and (own[-1] is frames[-1] or in_torch) else None


def _blamed(waiting: tuple[StuckRank, ...], missing: tuple[StuckRank, ...]) -> StuckRank | None:
    """Whoever did not come; among equals the one that is furthest behind; nobody when all are alike."""
    suspects = missing or waiting
    first = min(suspects, key=lambda one: (one.last_step, one.rank))
    if missing and waiting:
        return first
    alone = len(suspects) == 1 or any(one.last_step != first.last_step for one in suspects)
    return first if alone and not (waiting and len(waiting) == 1) else None


def _confidence(at: StuckRank, waiting: tuple[StuckRank, ...], suspects: tuple[StuckRank, ...]) -> float:
    """High where the stacks say where it stands and nobody else could be meant."""
    if not at.frames or not all(waits_in_collective(one.frames) for one in waiting):
        return 0.6
    return 0.9 if len(suspects) == 1 else 0.8


def _cause(seen: Hang, waiting: tuple[StuckRank, ...], blamed: StuckRank | None) -> str:
    since = f"No rank made progress for {seen.limit_s:.0f} s" + ("" if seen.stepped else " before the first step")
    if waiting and blamed is not None and blamed not in waiting:
        what = waiting[0].frames[-1].function
        who = _ranks(waiting)
        return f"{since}: {who} in {what}, which rank {blamed.rank} did not enter{_standing(blamed)}."
    if waiting:
        return f"{since}: {_ranks(waiting)} in {waiting[0].frames[-1].function}, and nobody completes it."
    where = "" if blamed is None else f": rank {blamed.rank} stands still{_standing(blamed)}"
    return f"{since}{where}."


def _ranks(ranks: tuple[StuckRank, ...]) -> str:
    shown = ", ".join(str(one.rank) for one in ranks[:8]) + (" …" if len(ranks) > 8 else "")
    return f"rank {shown} waits" if len(ranks) == 1 else f"ranks {shown} wait"


def _standing(one: StuckRank) -> str:
    frame = _telling(one.frames)
    if frame is None:
        return f" (after step {one.last_step})"
    return f" (after step {one.last_step}, in {frame.function} at {PurePath(frame.file).name}:{frame.line})"


def _telling(frames: tuple[Frame, ...]) -> Frame | None:
    """The innermost frame of the user's own code, else the innermost of all."""
    shown = _own(frames) or frames
    return shown[-1] if shown else None


def _own(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    return tuple(frame for frame in frames if not any(library in frame.file for library in _LIBRARIES))


def _place(one: StuckRank) -> tuple[str, ...]:
    frame = _telling(one.frames)
    return () if frame is None else (PurePath(frame.file).name, frame.function)


def _other(seen: Hang, one: StuckRank, *, waits: bool) -> Finding:
    return Finding(
        role=CausalRole.CASCADE if waits else CausalRole.UNKNOWN,
        authority=Authority.HOST,
        source=_source(one),
        excerpt=_excerpt(one),
        at_ms=seen.at_ms,
        rank=one.rank,
        node=one.node,
        blob_digest=one.stacks_digest,
    )


def _source(one: StuckRank) -> str:
    return f"rank {one.rank} stacks ({one.stacks_source})"


def _excerpt(one: StuckRank) -> str:
    lines = [f"after step {one.last_step}, silent for {one.silent_s:.0f} s"]
    lines += [f"  {frame.file}:{frame.line} in {frame.function}" for frame in one.frames[-_FRAMES_SHOWN:]]
    return "\n".join(lines)
