"""References that users write: `NAME[@DIGEST][:WEIGHT]`."""

from __future__ import annotations

import math
import re

from trackway_common.events import DatasetRef
from trackway_common.fields import Fields

DATASET_SYNTAX = "NAME[@DIGEST][:WEIGHT], such as stdlib, stdlib@sha256:1f2e… or stdlib:0.5"
_DATASET = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,62})(@(?P<digest>(sha256:)?[0-9a-f]{6,64}))?(:(?P<weight>[^:@]+))?", re.ASCII
)


def datasets(fields: Fields) -> tuple[DatasetRef, ...]:
    """Read `datasets`; digests are as written, whole or not, until they are resolved."""
    found: list[DatasetRef] = []
    for i, written in enumerate(fields.texts("datasets")):
        place = f"datasets[{i}]"
        ref = _dataset(fields, place, written)
        if any(ref.name == earlier.name for earlier in found):
            fields.violation(place, f"{ref.name!r} stands twice; give one weight")
        found.append(ref)
    return tuple(found)


def _dataset(fields: Fields, place: str, written: str) -> DatasetRef:
    match = _DATASET.fullmatch(written)
    if match is None:
        fields.violation(place, f"{written!r} must be {DATASET_SYNTAX}")
        return DatasetRef(name=re.split("[@:]", written)[0], requested=written)
    digest = match["digest"] or ""
    if digest and not digest.startswith("sha256:"):
        digest = f"sha256:{digest}"
    weight = _weight(match["weight"])
    if weight is None:
        fields.violation(place, f"weight {match['weight']!r} must be a number above 0")
    return DatasetRef(name=match["name"], requested=written, manifest_digest=digest, weight=weight or 1.0)


def _weight(text: str | None) -> float | None:
    if text is None:
        return 1.0
    try:
        weight = float(text)
    except ValueError:
        return None
    return weight if math.isfinite(weight) and weight > 0 else None
