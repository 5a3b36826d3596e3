"""The compute catalogue's file, and what a pool offers by it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from trackway_common.errors import CommandRejected
from trackway_scheduler.adapters.catalogue_file import parse_catalogue, read_catalogue
from trackway_scheduler.domain.catalogue import Capacity, offers

GOOD = b"""
apiVersion: trackway/v1
kind: ComputeCatalogue
pools: [{name: east, substrate: ray}]
classes:
  - {name: h100-8x, pool: east, accelerator_kind: h100, accelerators_per_rank: 1, cpus_per_rank: 8,
     memory_gib_per_rank: 64, max_ranks: 8, preemptible: true,
     price_per_accelerator_hour: {amount: 2.5, currency: EUR, since: "2026-01-01"}}
"""


def test_a_class_is_read_with_its_price():
    (compute,) = parse_catalogue(GOOD, name="c.yaml").classes
    assert (compute.name, compute.pool, compute.accelerators_per_rank) == ("h100-8x", "east", 1)
    assert compute.memory_bytes_per_rank == 64 << 30
    assert (compute.price.amount, compute.price.currency, compute.price.since) == (2.5, "EUR", "2026-01-01")
    assert compute.preemptible


def test_the_local_stacks_own_catalogue_is_good():
    catalogue = read_catalogue(Path(str(files("trackway.local"))) / "catalogue.yaml")
    assert "local-cpu-2x" in [compute.name for compute in catalogue.classes]
    assert all(compute.accelerators_per_rank == 0 for compute in catalogue.classes)


def test_a_pool_offers_what_its_capacity_holds():
    catalogue = parse_catalogue(GOOD, name="c.yaml")
    (offer,) = offers(catalogue, "east", Capacity(cpus=100, accelerators=3, memory_bytes=1 << 40))
    assert (offer.compute_class, offer.max_ranks) == ("h100-8x", 3)
    assert offers(catalogue, "west", Capacity(cpus=1, accelerators=1, memory_bytes=1)) == ()


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (b"pool: east", b"pool: eats", "classes[0].pool"),
        (b"cpus_per_rank: 8", b"cpu_per_rank: 8", "classes[0].cpu_per_rank"),
        (b"max_ranks: 8", b"max_ranks: 0", "classes[0].max_ranks"),
        (b"amount: 2.5", b"amount: -1", "classes[0].price_per_accelerator_hour.amount"),
        (b"ComputeCatalogue", b"Catalogue", "kind"),
    ],
)
def test_a_mistake_is_named(old, new, field):
    with pytest.raises(CommandRejected) as refused:
        parse_catalogue(GOOD.replace(old, new), name="c.yaml")
    assert field in [violation.field for violation in refused.value.violations]


def test_a_name_stands_once():
    twice = GOOD + GOOD[GOOD.index(b"  - {") :]
    with pytest.raises(CommandRejected, match="stands twice"):
        parse_catalogue(twice, name="c.yaml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CommandRejected, match=r"nothing\.yaml can't be read"):
        read_catalogue(tmp_path / "nothing.yaml")
