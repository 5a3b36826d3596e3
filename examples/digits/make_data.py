"""Writes scikit-learn's handwritten digits (1,797 images, UCI) as small CSV files, always the same.

python make_data.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

FILES = 36
"""About 50 images each: enough files to split by, few enough to hash at once."""


def main(folder: Path) -> None:
    """Shuffle once, by a fixed order, and write; files that are there already are replaced by the same."""
    images, labels = load_digits(return_X_y=True)
    rows = np.column_stack([labels, images]).astype(int)
    rows = rows[np.random.RandomState(0).permutation(len(rows))]  # RandomState's streams never change (NEP 19).
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(rows, FILES)):
        lines = "".join(",".join(map(str, row)) + "\n" for row in part.tolist())
        (folder / f"digits-{number:02}.csv").write_text(lines, encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
