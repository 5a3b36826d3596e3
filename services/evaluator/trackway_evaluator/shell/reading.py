"""What readers may see of the fold, from before it exists until it has caught up and after."""

from __future__ import annotations

from collections.abc import Mapping

from trackway_common.errors import Unavailable

from trackway_evaluator.domain.state import RunEvaluations
from trackway_evaluator.shell.patience import Owner


class Reading:
    """The folded evaluations; the server that shows them listens before the owner can be made."""

    def __init__(self) -> None:
        self._owner: Owner | None = None

    def follow(self, owner: Owner) -> None:
        """Show what this owner folds."""
        self._owner = owner

    def states(self) -> Mapping[str, RunEvaluations]:
        """Every run's evaluations.

        Raises:
            Unavailable: the log was not read to its end yet.
        """
        if self._owner is None or not self._owner.caught_up.is_set():
            raise Unavailable("the evaluator is still reading the log; ask again in a moment")
        return self._owner.states()
