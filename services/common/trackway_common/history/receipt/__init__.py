"""The receipt of an attempt: every column of ``training_attempts``, computed from facts alone.

The view in ClickHouse computes the same from the same facts; a test holds the two together.
"""

from trackway_common.history.receipt.build import AttemptReceipt, attempt_receipt
from trackway_common.history.receipt.columns import columns_of

__all__ = ["AttemptReceipt", "attempt_receipt", "columns_of"]
