"""The compute catalogue as a YAML file."""

from __future__ import annotations

from pathlib import Path

from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.events import Price
from trackway_common.fields import Fields, nearest
from trackway_common.yaml_core import load_yaml

from trackway_scheduler.domain.catalogue import Catalogue, ComputeClass

API_VERSION = "trackway/v1"
KIND = "ComputeCatalogue"
_CLASS = (
    "name", "pool", "accelerator_kind", "accelerators_per_rank", "cpus_per_rank", "memory_gib_per_rank", "max_ranks",
    "preemptible", "price_per_accelerator_hour",
)  # fmt: skip
_GIB = 1 << 30


def read_catalogue(path: Path) -> Catalogue:
    """Read the file.

    Raises:
        CommandRejected: it can't be read, or something in it is wrong; every violation is named.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CommandRejected(f"the compute catalogue {path} can't be read: {error.strerror}") from error
    return parse_catalogue(data, name=path.name)


def parse_catalogue(data: bytes, *, name: str) -> Catalogue:
    """Parse a catalogue; raises as ``read_catalogue`` does."""
    found: list[FieldViolation] = []
    fields = Fields(load_yaml(data, name=name), "", found, ("apiVersion", "kind", "pools", "classes"))
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if (written := fields.text(key)) != wanted:
            fields.violation(key, f"must be {wanted}, not {written!r}")
    pools = tuple(pool.text("name") for pool in fields.sections("pools", ("name", "substrate")))
    classes = tuple(_compute_class(one, pools) for one in fields.sections("classes", _CLASS))
    names = [one.name for one in classes]
    for i, class_name in enumerate(names):
        if class_name in names[:i]:
            fields.violation(f"classes[{i}].name", f"{class_name!r} stands twice")
    if found:
        lines = "; ".join(f"{one.field} {one.description}" for one in found)
        raise CommandRejected(f"{name}: {lines}", reason="CATALOGUE_INVALID", violations=tuple(found))
    return Catalogue(classes=classes)


def _compute_class(fields: Fields, pools: tuple[str, ...]) -> ComputeClass:
    pool = fields.text("pool")
    if pool and pool not in pools:
        fields.violation("pool", f"{pool!r} is not among the pools{nearest(pool, pools)}")
    price = fields.section("price_per_accelerator_hour", ("amount", "currency", "since"))
    return ComputeClass(
        name=fields.text("name"),
        pool=pool,
        accelerator_kind=fields.text("accelerator_kind"),
        accelerators_per_rank=fields.whole("accelerators_per_rank", 0, at_least=0),
        cpus_per_rank=fields.number("cpus_per_rank", 1.0, low=0.0),
        memory_bytes_per_rank=round(fields.number("memory_gib_per_rank", 0.0, low=0.0) * _GIB),
        max_ranks=fields.whole("max_ranks", 1, at_least=1),
        preemptible=fields.flag("preemptible", False),
        price=Price(
            amount=price.number("amount", 0.0, low=0.0),
            currency=price.text("currency", "USD"),
            since=price.text("since", ""),
        ),
    )
