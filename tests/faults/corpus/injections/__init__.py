"""How each labelled fault is injected: one entry per label."""

from __future__ import annotations

from tests.faults.corpus.expected import LABELS
from tests.faults.corpus.injection import Injection
from tests.faults.corpus.injections import from_outside, in_program, on_nodes

INJECTIONS: dict[str, Injection] = in_program.INJECTIONS | from_outside.INJECTIONS | on_nodes.INJECTIONS
assert INJECTIONS.keys() == {label.name for label in LABELS}, INJECTIONS.keys() ^ {label.name for label in LABELS}
