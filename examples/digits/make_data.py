"""Write scikit-learn's handwritten digits as text files: `python make_data.py FOLDER`.

One line a picture: 64 pixels of 0 to 16, then the digit. Forty files, so that a snapshot can split them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sklearn.datasets import load_digits

FILES = 40


def main(folder: Path) -> None:
    pictures, labels = load_digits(return_X_y=True)
    lines = [" ".join(str(int(x)) for x in (*picture, label)) for picture, label in zip(pictures, labels, strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        (folder / f"part-{number:02}.txt").write_text("\n".join(lines[number::FILES]) + "\n")
    print(f"{len(lines)} pictures in {FILES} files below {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
