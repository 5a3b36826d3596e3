"""Samples as the user's data function yields them, and rows as scorers make them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trackway_common.errors import CommandRejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One thing to score."""

    id: str
    """Unique in its task, and the same in every try."""
    fields: Mapping[str, Any]
    """What the task's kind asks for, such as `input` and `target`; the user's own types."""
    slices: Mapping[str, str]
    """Values of the task's slice fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scored sample: what is stored and what metrics are made of."""

    id: str
    metrics: Mapping[str, float]
    """Empty where the sample could not be scored."""
    weight: float = 1.0
    """Share in the mean: 1 a sample, or its bytes."""
    slices: Mapping[str, str] = field(default_factory=dict)
    failed: bool = False
    """Scored, and wrong."""
    error: str = ""
    """Why it could not be scored."""
    prompt: str = ""
    output: str = ""
    target: str = ""


def samples_of(yielded: Iterable[object], slice_names: Iterable[str], where: str) -> Iterator[Sample]:
    """Check what a data function yields.

    Raises:
        CommandRejected: an item is no mapping, has no `id` or one that was there before, or lacks a slice field.
    """
    names = tuple(slice_names)
    seen: set[str] = set()
    for i, item in enumerate(yielded):
        if not isinstance(item, Mapping):
            raise _bad(where, i, f"is a {type(item).__name__}; yield mappings with an id")
        sample_id = str(item.get("id", ""))
        if not sample_id or sample_id in seen:
            raise _bad(where, i, f"has the id {sample_id!r}; every sample needs one of its own")
        if missing := [name for name in names if name not in item]:
            raise _bad(where, i, f"has no {', '.join(missing)}, by which the pack slices")
        seen.add(sample_id)
        yield Sample(id=sample_id, fields=item, slices={name: str(item[name]) for name in names})


def required(sample: Sample, key: str) -> Any:
    """A field that the task's kind can't do without.

    Raises:
        CommandRejected: the sample lacks it.
    """
    if key not in sample.fields:
        raise CommandRejected(
            f"sample {sample.id!r} has no {key!r}, which this kind of task needs", reason="BAD_SAMPLE"
        )
    return sample.fields[key]


def _bad(where: str, i: int, what: str) -> CommandRejected:
    return CommandRejected(f"{where}: sample {i} {what}", reason="BAD_SAMPLE")
