"""Programs that import nothing of Trackway: killed, one starts over, the other goes on from the folder it wrote."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import yaml
from trackway import TrackwayClient
from trackway_common.events import RunPhase

from tests.support.runs import Followed, ended, follow, spec, submit, trainer_pid

EXAMPLE = Path(__file__).parents[2] / "examples/script"
RETRY = {"unknown_kill": {"max": 3, "backoff_s": 0.2}}
COUNTS = '''
"""Counts steps, keeps each as a folder, and waits behind all but the last for a file of its number: leave to go on."""

import os
import sys
import time
from pathlib import Path

last, leaves = int(sys.argv[1]), Path(sys.argv[2])
checkpoints = Path(os.environ["TRACKWAY_CHECKPOINT_DIR"])
resume = os.environ.get("TRACKWAY_RESUME_FROM")
done = int(Path(resume, "state.txt").read_text()) if resume else 0
print(f"goes on after step {done}", flush=True)
for step in range(done + 1, last + 1):
    unfinished = checkpoints / f"{step}.unfinished"
    unfinished.mkdir()
    Path(unfinished, "state.txt").write_text(str(step))
    unfinished.rename(checkpoints / str(step))
    while step < last and not Path(leaves, str(step)).exists():
        time.sleep(0.02)
'''


HELD = """
import runpy
import sys
import time
from pathlib import Path

leave = Path(sys.argv.pop(1))
while not leave.exists():
    time.sleep(0.02)
runpy.run_path("train.py", run_name="__main__")
"""
"""Runs the example's script, but only once a file exists."""


def test_a_script_that_saves_nothing_starts_over_and_explain_says_so(client, tmp_path):
    leave = tmp_path / "leave"
    run_id = submit(client, example(tmp_path, leave))
    kill = kill_once("AttemptStarted", rank=1)

    def on_fact(followed: Followed) -> None:
        kill(followed)
        if followed.named("AttemptStarted"):
            leave.touch()

    followed = follow(client, run_id, on_fact)

    assert ended(client, run_id).phase is RunPhase.SUCCEEDED
    assert [attempt["reason"] for attempt in followed.named("AttemptEnded")] == ["UNKNOWN_KILL", "COMPLETED"]
    assert followed.named("AttemptEnded")[0]["blamed_rank"] == 1
    assert [target["checkpoint"] for target in followed.named("ResumeTargetChosen")] == [None, None]
    assert "attempt 2, which began again at step 0" in client.explain(f"{run_id}/1").text
    assert printed(client, f"{run_id}/2", rank=0)[0].startswith("step 10 loss")


def test_a_program_goes_on_from_the_folder_that_it_wrote(client, tmp_path):
    leaves = tmp_path / "leaves"
    leaves.mkdir()
    run_id = submit(client, counting(tmp_path, last=3, leaves=leaves))
    kill = kill_once("CheckpointCommitted", rank=0)

    def on_fact(followed: Followed) -> None:
        kill(followed)
        if followed.named("AttemptEnded") and followed.facts[-1].fact == "CheckpointCommitted":
            (leaves / str(followed.facts[-1].fields["checkpoint"]["step"])).touch()

    followed = follow(client, run_id, on_fact)

    run = ended(client, run_id)
    assert run.phase is RunPhase.SUCCEEDED
    assert [attempt["reason"] for attempt in followed.named("AttemptEnded")] == ["UNKNOWN_KILL", "COMPLETED"]
    committed = [fact["checkpoint"] for fact in followed.named("CheckpointCommitted")]
    assert [(checkpoint["step"], checkpoint["epoch"]) for checkpoint in committed] == [(1, 1), (2, 2), (3, 2)]
    assert [target["checkpoint"] for target in followed.named("ResumeTargetChosen")] == [None, committed[0]]
    assert [printed(client, f"{run_id}/{n}", rank=0) for n in (1, 2)] == [
        ["goes on after step 0"],
        ["goes on after step 1"],
    ]
    # It ended at once after its last folder: what is judged and given out is that one all the same.
    assert run.last_committed is not None
    assert run.last_committed.step == 3
    assert followed.one("RunSucceeded")["result"]["step"] == 3
    assert client.verify_checkpoint(f"{run_id}/3").ok


def example(folder: Path, leave: Path) -> Path:
    """The example's own script and spec, with fewer steps, no wait before another try, and begun when told to."""
    code = folder / "code"
    code.mkdir()
    (code / "train.py").write_bytes((EXAMPLE / "train.py").read_bytes())
    (code / "held.py").write_text(HELD)
    body = yaml.safe_load((EXAMPLE / "run.yaml").read_text())
    body["entrypoint"] = {"script": "held.py", "args": [str(leave), "--steps", "20"]}
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(body | {"code": {"path": str(code)}, "retry": RETRY}))
    return path


def counting(folder: Path, *, last: int, leaves: Path) -> Path:
    """A run of one rank that counts to ``last`` without torch."""
    code = folder / "code"
    code.mkdir()
    (code / "count.py").write_text(COUNTS)
    return spec(
        folder,
        entrypoint={"script": "count.py", "args": [str(last), str(leaves)]},
        code={"path": str(code)},
        datasets=None,
        topology={"world_size": 1},
        retry=RETRY,
    )


def kill_once(fact: str, rank: int):
    """Send SIGKILL to a rank's program when the first fact of that name is told."""
    killed: list[int] = []

    def on_fact(followed: Followed) -> None:
        if followed.facts[-1].fact == fact and not killed:
            killed.append(trainer_pid(followed, rank))
            os.kill(killed[0], signal.SIGKILL)

    return on_fact


def printed(client: TrackwayClient, attempt: str, rank: int) -> list[str]:
    """What a rank of an attempt printed."""
    return [line.text for line in client.logs(attempt, rank=rank) if line.stream == "stdout"]
