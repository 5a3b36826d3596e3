"""How each child is, kept in ``status.json`` for whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from trackway.local.processes import is_alive
from trackway.local.state import ProcessMark, StateFolder, read_json, read_record, write_json


class ChildState(StrEnum):
    """Where a child is in its life."""

    WAITING = "waiting"
    """For the children it depends on."""
    STARTING = "starting"
    READY = "ready"
    UNHEALTHY = "unhealthy"
    """Runs, but does not answer. It is not restarted: on a busy machine that would only make things worse."""
    RESTARTING = "restarting"
    """Died; waits out its back-off."""
    STOPPED = "stopped"
    ORPHANED = "orphaned"
    """Runs without a supervisor, which was killed. Only read, never written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildStatus:
    """One child, as of its last change."""

    name: str
    state: ChildState
    endpoint: str
    since: str
    process: ProcessMark | None = None
    restarts: int = 0
    detail: str = ""
    """Why it died or is not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackStatus:
    """A stack, as of now."""

    folder: str
    running: bool
    """Its supervisor lives."""
    supervisor: ProcessMark | None
    children: tuple[ChildStatus, ...]

    def all_ready(self) -> bool:
        """Whether there is something, and all of it is ready."""
        return bool(self.children) and all(child.state is ChildState.READY for child in self.children)


class StatusBoard:
    """The supervisor's view; every change is written out."""

    def __init__(self, folder: StateFolder, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._folder = folder
        self._now = now
        self._children: dict[str, ChildStatus] = {}

    def add(self, name: str, endpoint: str) -> None:
        """Begin with a child that waits."""
        waiting = ChildStatus(name=name, state=ChildState.WAITING, endpoint=endpoint, since=self._time())
        self._write(waiting)

    def change(self, name: str, state: ChildState, *, process: ProcessMark | None = None, detail: str = "") -> None:
        """Note where a child is now."""
        before = self._children[name]
        restarted = state is ChildState.RESTARTING
        changed = before.state is not state or before.process != process
        self._write(
            replace(
                before,
                state=state,
                process=process,
                detail=detail,
                restarts=before.restarts + restarted,
                since=self._time() if changed else before.since,
            )
        )

    def _write(self, status: ChildStatus) -> None:
        if self._children.get(status.name) == status:
            return
        self._children[status.name] = status
        write_json(self._folder.status, {"children": [asdict(child) for child in self._children.values()]})

    def _time(self) -> str:
        return self._now().isoformat(timespec="milliseconds")


def read_status(folder: StateFolder) -> StackStatus:
    """Return how the folder's stack is; with its supervisor gone, what is left of it."""
    record = read_record(folder)
    supervisor = record.supervisor if record else None
    running = is_alive(supervisor)
    children = recorded_children(folder) if record else ()
    return StackStatus(
        folder=str(folder.root),
        running=running,
        supervisor=supervisor if running else None,
        children=children if running else tuple(_without_supervisor(children)),
    )


def recorded_children(folder: StateFolder) -> tuple[ChildStatus, ...]:
    """Return the children as the supervisor last wrote them."""
    raw = read_json(folder.status) or {"children": []}
    return tuple(_child(dict(child)) for child in raw["children"])


def _child(raw: dict[str, object]) -> ChildStatus:
    process = raw.pop("process")
    mark = ProcessMark(**process) if isinstance(process, dict) else None
    return ChildStatus(**raw | {"state": ChildState(str(raw["state"]))}, process=mark)  # type: ignore[arg-type] # our own file


def _without_supervisor(children: Iterable[ChildStatus]) -> Iterable[ChildStatus]:
    for child in children:
        if is_alive(child.process):
            yield replace(child, state=ChildState.ORPHANED, detail="its supervisor is gone; `trackway down` ends it")
        else:
            yield replace(child, state=ChildState.STOPPED, process=None)
