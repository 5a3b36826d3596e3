"""From what the user wrote to a run spec with every input pinned, or every violation at once."""

from trackway_scheduler.domain.spec.reading import Submission, read_spec
from trackway_scheduler.domain.spec.resolution import Surroundings, resolve

__all__ = ["Submission", "Surroundings", "read_spec", "resolve"]
