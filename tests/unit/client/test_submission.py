"""What a submission reads: the spec's bytes, the pack beside it, the code folder it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from trackway.client.submission import NO_OVERRIDES, Overrides, read_submission
from trackway_common.errors import CommandRejected

SPEC = b"project: demo\nevaluation_pack: bytes-lm\ncode: {path: src}\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_bytes(SPEC)
    return path


def test_the_specs_bytes_are_sent_as_they_are(spec: Path) -> None:
    spec.write_bytes(b"# a comment\nproject:   demo   # kept\nlr: 1e-4\n")
    assert read_submission(spec, NO_OVERRIDES).config == spec.read_bytes()


@pytest.mark.parametrize(
    ("body", "folder", "requested"),
    [
        (b"project: demo\n", ".", "."),
        (b"code: {}\n", ".", "."),
        (b"code: {path: ../lib}\n", "../lib", "../lib"),
        (b"code: {path: 3}\n", None, ""),
        (b"code: [1]\n", None, ""),
        (b"code: {package: x==1}\n", None, ""),
        (b"just text\n", ".", "."),
    ],
)
def test_the_code_folder_is_relative_to_the_spec(spec: Path, body: bytes, folder: str | None, requested: str) -> None:
    spec.write_bytes(body)
    submission = read_submission(spec, NO_OVERRIDES)
    assert submission.code_folder == (None if folder is None else spec.parent / folder)
    assert submission.code_requested == requested


def test_the_pack_beside_the_spec_is_sent(spec: Path) -> None:
    assert read_submission(spec, NO_OVERRIDES).pack_body == b""
    (spec.parent / "bytes-lm.yaml").write_text("beside")
    assert read_submission(spec, NO_OVERRIDES).pack_body == b"beside"
    (spec.parent / "packs").mkdir()
    (spec.parent / "packs" / "bytes-lm.yaml").write_text("in packs")
    assert read_submission(spec, NO_OVERRIDES).pack_body == b"in packs"


def test_the_flag_names_another_pack_than_the_spec(spec: Path) -> None:
    (spec.parent / "bytes-lm.yaml").write_text("of the spec")
    (spec.parent / "other.yaml").write_text("of the flag")
    assert read_submission(spec, Overrides(evaluation_pack="other")).pack_body == b"of the flag"
    assert read_submission(spec, Overrides(evaluation_pack="registered")).pack_body == b""


def test_a_spec_of_the_packs_name_is_not_its_pack(tmp_path: Path) -> None:
    spec = tmp_path / "bytes-lm.yaml"
    spec.write_bytes(SPEC)
    assert read_submission(spec, NO_OVERRIDES).pack_body == b""


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/b", ".."])
def test_a_pack_name_is_never_a_path(spec: Path, name: str) -> None:
    (spec.parent.parent / "secret.yaml").write_text("x")
    assert read_submission(spec, Overrides(evaluation_pack=name)).pack_body == b""


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b"x" * (10 << 20), "10485760 bytes; at most 1048576"),
        ("ä".encode() * (1 << 20), "2097152 bytes; at most 1048576"),
        (b"a: [1\n", "not valid YAML at line"),
        (b"a: 1\na: 2\n", "stands twice"),
    ],
)
def test_local_problems_of_the_spec_are_refused_by_name(spec: Path, body: bytes, says: str) -> None:
    spec.write_bytes(body)
    with pytest.raises(CommandRejected, match=says) as refused:
        read_submission(spec, NO_OVERRIDES)
    assert refused.value.violations[0].field == "config"


def test_a_missing_spec_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "gone.yaml", tmp_path):
        with pytest.raises(CommandRejected, match="name a file") as refused:
            read_submission(path, NO_OVERRIDES)
        assert refused.value.violations[0].field == "config"


def test_a_pack_that_is_not_utf8_is_refused_as_the_pack(spec: Path) -> None:
    (spec.parent / "bytes-lm.yaml").write_bytes(b"\xff")
    with pytest.raises(CommandRejected, match="not UTF-8") as refused:
        read_submission(spec, NO_OVERRIDES)
    assert refused.value.violations[0].field == "evaluation_pack"
