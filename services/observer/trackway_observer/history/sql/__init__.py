"""People's own SQL: what may run is decided here, by text alone."""

from trackway_observer.history.sql.guard import guard

__all__ = ["guard"]
