"""Readers of a run spec's sections. Each notes what is wrong and returns something well typed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trackway_common.canonical import MAX_SAFE_INTEGER
from trackway_common.events import (
    CheckpointPolicy,
    Entrypoint,
    EntrypointKind,
    InFlightPolicy,
    Label,
    Topology,
    Trigger,
)
from trackway_common.fields import Fields, nearest

from trackway_scheduler.domain.spec.gangs import gangs

RUNTIMES_TO_COME = ("lock", "image")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
_NAME_LETTERS = "letters, digits, '.', '_' and '-'"
_ENTRYPOINTS = ("function", "script", "command")


def name(fields: Fields, key: str) -> str:
    """A word that can stand in a resource name."""
    written = fields.text(key)
    if written and not _NAME.fullmatch(written):
        fields.violation(key, f"{written!r} must be 1 to 63 of {_NAME_LETTERS}, with a letter or digit at both ends")
    return written


def word(fields: Fields, key: str, options: Sequence[str], default: str) -> str:
    """One of a few words; the default where it is absent."""
    written = fields.text(key, default)
    if written in options:
        return written
    fields.violation(key, f"{written!r} is not known{nearest(written, options)}; one of {', '.join(options)}")
    return default


def function(fields: Fields, key: str, default: str | None = None) -> str:
    """`module:function`."""
    written = fields.text(key, default)
    if written and not _FUNCTION.fullmatch(written):
        fields.violation(key, f"{written!r} must be module:function, such as my_model.train:main")
    return written


def entrypoint(fields: Fields) -> Entrypoint:
    """Exactly one of function, script and command."""
    section = fields.section("entrypoint", (*_ENTRYPOINTS, "args"))
    written = [key for key in _ENTRYPOINTS if section.has(key)]
    if len(written) != 1:
        has = f"has {' and '.join(written) or 'none'}" if fields.has("entrypoint") else "is required"
        fields.violation("entrypoint", f"{has}; write exactly one of {', '.join(_ENTRYPOINTS)}")
        return Entrypoint()
    kind = written[0]
    arguments = section.texts("args")
    if arguments and kind != "script":
        section.violation("args", f"belongs to script; a {kind} has none")
    match kind:
        case "function":
            return Entrypoint(kind=EntrypointKind.FUNCTION, argv=(function(section, "function"),))
        case "script":
            return Entrypoint(kind=EntrypointKind.SCRIPT, argv=(_script(section), *arguments))
        case _:
            return Entrypoint(kind=EntrypointKind.COMMAND, argv=_command(section))


def runtime_kind(fields: Fields) -> str:
    """Only the pool's own environment, for now."""
    section = fields.section("runtime", ("kind",))
    kind = section.text("kind", "pool")
    if kind in RUNTIMES_TO_COME:
        section.violation("kind", f"{kind!r} is not available yet; write pool, the environment that is there")
    elif kind != "pool":
        section.violation("kind", f"{kind!r} is not known; write pool, the environment that is there")
    return kind


def topology(fields: Fields) -> Topology:
    """Ranks, and how they work together."""
    known = ("world_size", "world_size_wait_s", "strategy", "precision", "checkpoint")
    section = fields.section("topology", known)
    gang = gangs(section)
    world_size = gang.whole
    strategy = word(section, "strategy", ("ddp", "single"), "ddp" if world_size > 1 else "single")
    if strategy == "single" and world_size > 1:
        section.violation("strategy", f"'single' is one rank, and world_size is {world_size}; write ddp")
    checkpoint = section.section("checkpoint", ("keep_last", "in_flight"))
    in_flight = word(checkpoint, "in_flight", ("wait", "skip"), "wait")
    return Topology(
        world_size=world_size,
        min_world_size=gang.least,
        world_size_wait_s=gang.wait_s,
        strategy=strategy,
        precision=word(section, "precision", ("float32", "bfloat16", "float16"), "float32"),
        checkpoint=CheckpointPolicy(
            keep_last=checkpoint.whole("keep_last", 3, at_least=2, at_most=1_000_000),
            in_flight=InFlightPolicy(in_flight.upper()),
        ),
    )


def compute(fields: Fields) -> tuple[str, ...]:
    """One class, or several to go on to in order; at least one, empty where it is missing."""
    if fields.kind("compute") != "a list":
        return (fields.text("compute"),)
    names = fields.texts("compute")
    if not names:
        fields.violation("compute", "is an empty list; name at least one class")
    for i, name in enumerate(names):
        if name in names[:i]:
            fields.violation(f"compute[{i}]", f"{name!r} stands twice")
    return names or ("",)


def labels(fields: Fields) -> tuple[Label, ...]:
    """Free words for later readers, in order of their keys."""
    section = fields.section("labels")
    return tuple(Label(key=key, value=section.text(key, "")) for key in sorted(section.names()))


def trigger(fields: Fields) -> Trigger:
    """What made somebody start the run."""
    section = fields.section("trigger", ("kind", "ref"))
    kind = word(section, "kind", ("person", "schedule", "code", "data"), "person")
    return Trigger(kind=kind, ref=section.text("ref", ""))


def seed(fields: Fields) -> int | None:
    """The user's seed; None where it has to be drawn."""
    return fields.whole("seed", 0, at_least=0, at_most=MAX_SAFE_INTEGER) if fields.has("seed") else None


def _script(section: Fields) -> str:
    path = section.text("script")
    if path and (path.startswith("/") or ".." in path.split("/") or not path.endswith(".py")):
        section.violation("script", f"{path!r} must be the path of a .py file inside the code folder")
    return path


def _command(section: Fields) -> tuple[str, ...]:
    words = section.texts("command")
    if not words:
        section.violation("command", 'must be a list of words, such as ["./run.sh", "fast"]')
    return words
