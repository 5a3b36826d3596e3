"""Train under Trackway, or by hand with the same program.

    import trackway.training as tw

    with tw.session() as s:
        data = load(s.dataset("words").files("train"))
        model, optimizer = build(s.config)
        cursor = tw.DataCursor(seed=s.seed, dataset_len=len(data), batch_size=64)
        model = s.prepare(model=model, optimizer=optimizer, cursor=cursor)
        for step in range(s.restore(), s.config["steps"]):
            loss = train_step(model, optimizer, data[next(cursor)])
            s.report(step + 1, loss=loss)
            if (step + 1) % 100 == 0:
                s.checkpoint(step + 1)

Every rank runs the same program. A step's number is how many optimizer steps are done: ``restore()`` returns it, and
``report`` and ``checkpoint`` take it. What runs again after a failure goes on with the same weights, optimizer state,
learning rates, random numbers and samples; on CPU with up to two ranks the losses are equal bit for bit.

Started by hand (``python train.py``, ``torchrun``), the same program trains on this machine: reports are printed,
checkpoints go to ``./.trackway`` or ``$TRACKWAY_LOCAL_DIR``, hyperparameters and data come from the arguments of
``session``.
"""

from trackway.training.cursor import DataCursor
from trackway.training.datasets import DataFile, Dataset
from trackway.training.errors import (
    CheckpointCorrupt,
    CheckpointIncompatible,
    DataCorrupt,
    DataSchemaDrift,
    DataUnavailable,
    NumericDivergence,
)
from trackway.training.opening import session
from trackway.training.prepared import Stateful
from trackway.training.session import Saved, Session

__all__ = [
    "CheckpointCorrupt",
    "CheckpointIncompatible",
    "DataCorrupt",
    "DataCursor",
    "DataFile",
    "DataSchemaDrift",
    "DataUnavailable",
    "Dataset",
    "NumericDivergence",
    "Saved",
    "Session",
    "Stateful",
    "session",
]
