"""The views that people may read: their names and columns are a contract."""

from __future__ import annotations

_NAMES = """
    training_runs training_attempts checkpoints evaluations evaluation_metrics evaluation_samples retry_decisions
    events rejected_events ownership_claims dead_letters metrics logs resource_samples rank_heartbeats signals
    budget_ledger queue_waits agents projector_lag
"""
CONTRACT_VIEWS = frozenset(_NAMES.split())
"""Those that have data now; ``sweeps`` joins them once there are sweeps."""
