"""The same program by hand, with nothing of Trackway running: it trains, checkpoints and goes on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.integration.training_program import PROGRAM

README = Path(__file__).parents[2] / "README.md"
LOSS = re.compile(r"step (\d+)  loss=(\S+)")


def run(folder: Path, *command: str, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRACKWAY_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**clean, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def losses(output: str) -> dict[int, str]:
    return {int(step): loss for step, loss in LOSS.findall(output)}


def test_program_run_by_hand_continues_and_passes_over_what_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    first = run(tmp_path, sys.executable, "train.py")
    assert "starts at 0" in first
    assert sorted(losses(first)) == list(range(1, 13))
    assert (tmp_path / ".trackway" / ".gitignore").read_text() == "*\n"
    (newest,) = tmp_path.glob(".trackway/checkpoints/*/data/s000000010-*/shard/r00000-0.safetensors")
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.chmod(0o644)
    newest.write_bytes(content)
    second = run(tmp_path, sys.executable, "train.py")
    assert "is damaged and was passed over" in second
    assert "continues from step 5" in second
    assert losses(second) == {step: loss for step, loss in losses(first).items() if step > 5}


def test_torchrun_starts_it_on_two_ranks_and_one_rank_continues(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py")
    assert "starts at 0" in run(tmp_path, *torchrun, TRACKWAY_LOCAL_DIR=str(tmp_path / "kept"))
    second = run(tmp_path, sys.executable, "train.py", TRACKWAY_LOCAL_DIR=str(tmp_path / "kept"))
    assert "continues from step 10" in second
    assert sorted(losses(second)) == [11, 12]
    assert not (tmp_path / ".trackway").exists()


BEFORE_THE_SNIPPET = """
import torch
data = torch.randn(256, 4, generator=torch.Generator().manual_seed(1))
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def train_step(model, optimizer, batch):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(batch), batch.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    return loss
"""


def test_what_the_readme_shows_runs_by_hand(tmp_path: Path) -> None:
    [snippet] = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (tmp_path / "train.py").write_text(BEFORE_THE_SNIPPET + snippet)
    assert max(losses(run(tmp_path, sys.executable, "train.py"))) == 1000
