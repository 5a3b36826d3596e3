"""The examples' specs, packs and data functions, without a stack."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from trackway_common.evaluation_pack import check_against, parse_pack
from trackway_common.yaml_core import load_yaml

EXAMPLES = Path(__file__).parents[2] / "examples"


@dataclass(frozen=True)
class InMemoryFile:
    """A file as a snapshot gives it."""

    path: str
    content: bytes

    def read_bytes(self) -> bytes:
        return self.content


def module(path: str) -> ModuleType:
    """A module of an example, loaded by its file, so that no example shadows another."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), EXAMPLES / path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("name", ["bytes-lm", "digits"])
def test_pack_fits_its_run_spec(name: str) -> None:
    spec = load_yaml((EXAMPLES / name / "run.yaml").read_bytes(), name="run.yaml")
    assert isinstance(spec, dict)
    pack = parse_pack((EXAMPLES / name / "packs" / f"{spec['evaluation_pack']}.yaml").read_bytes())
    assert check_against(pack, {dataset.partition(":")[0] for dataset in spec["datasets"]}) == ()
    assert pack.name == spec["evaluation_pack"]
    references = [spec["evaluation"]["model"], spec["entrypoint"]["function"], *(task.data for task in pack.tasks)]
    for reference in references:
        assert (EXAMPLES / name / (reference.partition(":")[0].replace(".", "/") + ".py")).is_file()


def test_held_out_windows_and_lines_are_spread_over_modules() -> None:
    data = module("bytes-lm/bytes_lm/data.py")
    text = b"".join(b"value_%03d = compute(argument_%03d)\n" % (i, i) for i in range(100))
    files = [InMemoryFile(f"m{i}.py", text) for i in range(4)] + [InMemoryFile("empty.py", b"")]
    files.append(InMemoryFile("compiled.pyc", b"\0" * 9999))
    windows = list(data.evaluation_windows(files, "heldout", 8))
    assert len(windows) == 8
    assert {window["id"].partition("@")[0] for window in windows} == {f"m{i}.py" for i in range(4)}
    for window in windows:
        start = int(window["id"].partition("@")[2])
        assert bytes(window["target"].tolist()) == text[start + 1 : start + 129]
        assert window["bytes"] == len(window["target"]) == len(window["input"])
    for line in data.lines(files, "heldout", 6):
        middle = int(line["id"].partition("@")[2])
        assert bytes(line["prompt"]) == text[middle - 64 : middle]
        assert text[middle:].startswith(bytes(line["target"]) + b"\n")
    assert len({line["id"] for line in data.lines(files, "heldout", 0)}) > 300


def test_digits_are_always_the_same_files(tmp_path: Path) -> None:
    module("digits/make_data.py").main(tmp_path)
    files = sorted(tmp_path.iterdir())
    content = b"".join(file.read_bytes() for file in files)
    assert len(files) == 36
    assert content.count(b"\n") == 1797
    assert hashlib.sha256(content).hexdigest() == "8363e68d229756251326ed1bce937391446458290c457df61b4f6560f787fbdf"
    data = module("digits/digits/data.py")
    snapshot = [InMemoryFile(file.name, file.read_bytes()) for file in files]
    images, labels = data.load(snapshot)
    assert images.shape == (1797, 64)
    assert float(images.max()) == 1.0
    samples = list(data.evaluation_samples(snapshot[:2], "test", 0))
    assert [sample["target"] for sample in samples] == labels[: len(samples)].tolist()
