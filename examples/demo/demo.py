"""The promise, end to end on this machine: kill a worker of a real training, and read why and what happened next.

Every claim is checked against what the services report; the exit code is 1 when one is false.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path

from claims import LOG, SEED_QUERY, SERVICES, SQL, explanation
from story import Story, check, named
from trackway import TrackwayClient
from trackway.client.resources import RunFact
from trackway_common.errors import TrackwayError
from trackway_common.events import RunPhase

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OWN_STATE = ROOT / ".build/demo"
TRACKWAY = Path(sys.executable).with_name("trackway")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--state", type=Path, default=OWN_STATE, help="folder of the demo's own stack")
    options.add_argument("--keep", action="store_true", help="leave the stack running at the end")
    options.add_argument("--config", type=Path, default=ROOT / "examples/bytes-lm/run.yaml")
    chosen = options.parse_args()
    began = time.monotonic()
    if chosen.state != OWN_STATE and chosen.state.exists():
        sys.exit(f"{chosen.state} is there already; name a new folder, the demo begins with an empty one")
    ask("down", state=chosen.state)
    shutil.rmtree(OWN_STATE, ignore_errors=True)
    try:
        failed = run_demo(chosen.state, chosen.config)
    except TrackwayError as error:
        failed = [f"the services answer: {error}"]
    finally:
        if not chosen.keep:
            ask("down", state=chosen.state)
    print("".join(f"\nFALSE: {claim}" for claim in failed) or "\nAll claims held.")
    print(f"It took {time.monotonic() - began:.0f} s.")
    if not failed:
        say_more(chosen.state, chosen.keep)
    return 1 if failed else 0


def run_demo(state: Path, config: Path) -> list[str]:
    """Run every part and return the claims that were false."""
    start(state)
    with TrackwayClient(state=state) as client:
        run_id = submit(config, state)
        story = hurt_and_watch(client, run_id)
        part("What the log says")
        failed = check(LOG, story)
        part("What the services report")
        failed += check(SERVICES, story)
        show_metrics(story)
        part("The query worth money")
        print(SEED_QUERY)
        trackway("sql", SEED_QUERY, state=state)
        failed += check(SQL, story)
        part("Explain the failed attempt")
        text = trackway("explain", f"{run_id}/1", state=state)
        return failed + check(explanation(text), story)


def start(state: Path) -> None:
    """Start a stack and register the data."""
    part("A stack: Kafka, Ray, a ClickHouse engine and five services")
    began = time.monotonic()
    trackway("up", state=state)
    print(f"  It was up after {time.monotonic() - began:.1f} s.")
    part("Data: the standard library's own text, by digest")
    stdlib = sysconfig.get_path("stdlib")
    chosen = ("--include", "*.py", "--exclude", "site-packages/*", "--split", "heldout=0.1", "--project", "examples")
    trackway("dataset", "snapshot", "stdlib", stdlib, *chosen, state=state)


def submit(config: Path, state: Path) -> str:
    """Submit the training and return the run's id, as the answer names it."""
    part("A training: a small GPT, two ranks, DDP")
    flags = ("--dataset", "stdlib:1.0", "--compute", "local-cpu-2x", "--evaluation-pack", "bytes-lm", "-o", "json")
    command = ("train", "submit", "--config", str(config), *flags)
    print(f"$ trackway {' '.join(command)}", flush=True)
    try:
        answer = json.loads(ask(*command, state=state).stdout)
        print(f"  run {answer['run_id']}: {answer['phase']}, config {answer['spec']['config_digest']}", flush=True)
    except (ValueError, LookupError) as error:
        sys.exit(f"FALSE: the submission is answered with the run, its phase and its config's digest: {error!r}")
    return str(answer["run_id"])


def hurt_and_watch(client: TrackwayClient, run_id: str) -> Story:
    """Follow the run to its end; SIGKILL rank 1's trainer once a checkpoint is committed."""
    part("Tracks, as they are laid")
    facts: list[RunFact] = []
    killed_after = 0
    for fact in client.watch(run_id):
        facts.append(fact)
        print(f"  {fact.occurred_at:%H:%M:%S}  {fact.summary}" if fact.occurred_at else f"  {fact.summary}", flush=True)
        if fact.fact == "CheckpointCommitted" and not killed_after and kill_trainer(facts, rank=1):
            killed_after = len(facts)
        if fact.phase is RunPhase.HELD:
            break
    return Story(client=client, run_id=run_id, facts=facts, killed_after=killed_after)


def kill_trainer(facts: Sequence[RunFact], rank: int) -> bool:
    """SIGKILL a rank's trainer of the newest attempt; False when there is none."""
    ranks = [entry for started in named(facts, "AttemptStarted")[-1:] for entry in started["ranks"]]
    for pid in [entry["trainer_pid"] for entry in ranks if entry["rank"] == rank]:
        print(f"  ── kill -9 {pid}: rank {rank}'s trainer ──", flush=True)
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
    return bool(ranks)


def show_metrics(story: Story) -> None:
    """Print what the evaluation measured."""
    for evaluation in story.client.evaluations(story.run_id):
        for task in evaluation.result.tasks if evaluation.result else ():
            for metric in task.metrics:
                error = f" ± {metric.stderr:.4f}" if metric.stderr is not None else ""
                print(f"      {task.task:16} {metric.name:20} {metric.value:.4f}{error}  n={metric.samples}")


def trackway(*arguments: str, state: Path) -> str:
    """Run the command line against the demo's stack, show the command and what it prints, return its output."""
    shown = ("…" if argument == SEED_QUERY else argument for argument in arguments)
    print(f"$ trackway {' '.join(shown)}", flush=True)
    done = ask(*arguments, state=state)
    print("\n".join(f"  {line}" for line in (done.stderr + done.stdout).splitlines()), flush=True)
    return done.stdout


def ask(*arguments: str, state: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line against the demo's stack; a command that fails ends the demo."""
    command = [str(TRACKWAY), *arguments, "--state", str(state)]
    environment = {name: value for name, value in os.environ.items() if name != "TRACKWAY_ENDPOINT"}
    done = subprocess.run(command, text=True, capture_output=True, env=environment, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}FALSE: `trackway {arguments[0]}` ends well, not with {done.returncode}")
    return done


def part(title: str) -> None:
    """Print a heading."""
    print(f"\n── {title} " + "─" * max(3, 96 - len(title)), flush=True)


def say_more(state: Path, kept: bool) -> None:
    """Tell how to look further."""
    print("\nLook further (RUN is any unique beginning of the id above):")
    if not kept:
        print(f"  {TRACKWAY} up --state {state}         # the same state, still there")
    for command in ("train list", "attempt show RUN/1", "explain RUN -o markdown", "checkpoint list RUN", "pool list"):
        print(f"  {TRACKWAY} {command} --state {state}")


if __name__ == "__main__":
    sys.exit(main())
