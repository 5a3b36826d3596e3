"""The promise, end to end on this machine: kill a worker of a real training, and read why and what happened next.

Every claim is checked against what the services report; the exit code is 1 when one is false.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from pathlib import Path

from trackway import TrackwayClient
from trackway.client.resources import RunFact
from trackway_common.events import EvaluationPhase, NextMove, RunPhase, TerminationReason

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OWN_STATE = ROOT / ".build/demo"
TRACKWAY = Path(sys.executable).with_name("trackway")
SEED_QUERY = """\
select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours
from training_attempts
where model_family = 'reasoning' and started_at >= now() - interval '7 days'
group by termination_reason order by gpu_hours desc;"""


@dataclass
class Checks:
    """Claims and whether they held."""

    failed: list[str] = field(default_factory=list)

    def that(self, claim: str, holds: bool, seen: object = "") -> None:
        """Print a claim with its verdict."""
        print(f"  {'✔' if holds else '✘'} {claim}" + (f"  [{seen}]" if seen != "" else ""))
        if not holds:
            self.failed.append(claim)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--state", type=Path, default=OWN_STATE, help="folder of the demo's own stack")
    options.add_argument("--keep", action="store_true", help="leave the stack running at the end")
    options.add_argument("--config", type=Path, default=ROOT / "examples/bytes-lm/run.yaml")
    chosen = options.parse_args()
    began = time.monotonic()
    if chosen.state != OWN_STATE and chosen.state.exists():
        sys.exit(f"{chosen.state} is there already; name a new folder, the demo begins with an empty one")
    trackway("down", state=chosen.state, quiet=True)
    shutil.rmtree(OWN_STATE, ignore_errors=True)
    try:
        failed = run_demo(chosen.state, chosen.config)
    finally:
        if not chosen.keep:
            trackway("down", state=chosen.state, quiet=True)
    print(f"\n{'All claims held' if not failed else f'FALSE: {failed}'}; {time.monotonic() - began:.0f} s.")
    if not failed:
        say_more(chosen.state, chosen.keep)
    return 1 if failed else 0


def run_demo(state: Path, config: Path) -> list[str]:
    """Run every part and return the claims that were false."""
    checks = Checks()
    part("A stack: Kafka, Ray, a ClickHouse engine and five services")
    trackway("up", state=state)
    part("Data: the standard library's own text, by digest")
    stdlib = sysconfig.get_path("stdlib")
    trackway(
        "dataset",
        "snapshot",
        "stdlib",
        stdlib,
        "--include",
        "*.py",
        "--exclude",
        "site-packages/*",
        "--split",
        "heldout=0.1",
        "--project",
        "examples",
        state=state,
    )
    with TrackwayClient(state=state) as client:
        run_id = submit(client, config, state)
        facts = hurt_and_watch(client, run_id)
        check_the_log(checks, facts)
        check_the_services(checks, client, run_id, facts)
    check_the_words(checks, run_id, state)
    return checks.failed


def submit(client: TrackwayClient, config: Path, state: Path) -> str:
    """Submit the training and return the run's id."""
    part("A training: a small GPT, two ranks, DDP")
    trackway(
        *("train", "submit", "--dataset", "stdlib:1.0", "--config", str(config)),
        *("--compute", "local-cpu-2x", "--evaluation-pack", "bytes-lm"),
        state=state,
    )
    return next(client.list_runs()).run_id


def hurt_and_watch(client: TrackwayClient, run_id: str) -> list[RunFact]:
    """Follow the run to its end; SIGKILL rank 1's trainer once a checkpoint is committed."""
    part("Tracks, as they are laid")
    facts: list[RunFact] = []
    killed = False
    for fact in client.watch(run_id):
        facts.append(fact)
        print(f"  {fact.occurred_at:%H:%M:%S}  {fact.summary}" if fact.occurred_at else f"  {fact.summary}", flush=True)
        if fact.fact == "CheckpointCommitted" and not killed:
            killed = True
            pid = trainer_pid(facts, rank=1)
            print(f"  ── kill -9 {pid}: rank 1's trainer ──", flush=True)
            os.kill(pid, signal.SIGKILL)
    return facts


def check_the_log(checks: Checks, facts: list[RunFact]) -> None:
    """Claims about the order of events, from the facts that were streamed."""
    part("What the log says")
    [ended, *_] = named(facts, "AttemptEnded")
    checks.that("the killed attempt was closed with its reason", ended["reason"] == "UNKNOWN_KILL", ended["reason"])
    checks.that("rank 1 is blamed", ended["blamed_rank"] == 1, ended["blamed_rank"])
    [decided, *_] = named(facts, "RetryDecided")
    budget = f"{decided['spent']} of {decided['budget']} of ledger {decided['ledger']}"
    checks.that(
        "the retry names the budget it spends", decided["move"] == NextMove.RETRY and decided["spent"] == 1, budget
    )
    targets = named(facts, "ResumeTargetChosen")
    checks.that("the first attempt found no checkpoint", targets[0]["checkpoint"] is None)
    committed = committed_before(facts, "AttemptEnded")
    resumed = targets[1]["checkpoint"] or {}
    checks.that(
        "the second resumed from the last committed one",
        resumed == committed[-1]["checkpoint"],
        f"step {resumed.get('step')}",
    )
    [_, second] = named(facts, "AttemptRunning")
    checks.that("and went on at the next step", second["first_step"] == resumed["step"] + 1, second["first_step"])


def check_the_services(checks: Checks, client: TrackwayClient, run_id: str, facts: list[RunFact]) -> None:
    """Claims about what each service answers."""
    part("What the services report")
    run = client.get_run(run_id)
    checks.that("the run succeeded in two attempts", run.phase is RunPhase.SUCCEEDED and run.attempt == 2, run.phase)
    first, second = sorted(client.attempts(run_id), key=lambda attempt: attempt.attempt)
    checks.that("the receipt holds the reason", first.reason is TerminationReason.UNKNOWN_KILL, first.cause)
    checks.that(
        "the second completed",
        second.reason is TerminationReason.COMPLETED,
        f"steps {second.first_step}–{second.last_step}",
    )
    [evaluation] = client.evaluations(run_id)
    result = evaluation.result
    held = evaluation.phase is EvaluationPhase.COMPLETED and result is not None and run.last_committed is not None
    checks.that("the run's evaluation completed", held, evaluation.phase)
    if result is not None and run.last_committed is not None:
        same = result.checkpoint.manifest_digest == run.last_committed.manifest_digest
        checks.that("it judged the last committed weights", same, f"step {result.checkpoint.step}")
        for task in result.tasks:
            for metric in task.metrics:
                error = f" ± {metric.stderr:.4f}" if metric.stderr is not None else ""
                print(f"      {task.task:16} {metric.name:20} {metric.value:.4f}{error}  n={metric.samples}")
        checks.that("raw outputs are kept", any(shard.rows for shard in result.shards), f"{len(result.shards)} shards")
    check = client.verify_checkpoint(f"{run_id}/{run.last_committed.step}" if run.last_committed else run_id)
    checks.that("every byte of the result verifies", check.ok, f"{check.files} files, {check.size_bytes} bytes")


def check_the_words(checks: Checks, run_id: str, state: Path) -> None:
    """The query that the product was asked for, and the explanation."""
    part("The query worth money")
    print(SEED_QUERY)
    answer = trackway("sql", SEED_QUERY, state=state)
    reasons = ("UNKNOWN_KILL", "COMPLETED")
    checks.that("it counts both attempts by reason", all(reason in answer for reason in reasons))
    part("Explain the failed attempt")
    explanation = trackway("explain", f"{run_id}/1", state=state)
    for word in ("UNKNOWN_KILL", "SIGKILL", "rank 1", "stdlib"):
        checks.that(f"the explanation says {word}", word.lower() in explanation.lower())


def trackway(*arguments: str, state: Path, quiet: bool = False) -> str:
    """Run the command line against the demo's stack; its output is shown and returned."""
    if not quiet:
        shown = " ".join(argument if argument != SEED_QUERY else '"…"' for argument in arguments)
        print(f"$ trackway {shown}", flush=True)
    command = [str(TRACKWAY), *arguments, "--state", str(state)]
    environment = {name: value for name, value in os.environ.items() if name != "TRACKWAY_ENDPOINT"}
    done = subprocess.run(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, check=False
    )
    if quiet:
        return done.stdout
    print("\n".join(f"  {line}" for line in done.stdout.splitlines()), flush=True)
    if done.returncode != 0:
        raise SystemExit(f"`trackway {arguments[0]}` ended with {done.returncode}")
    return done.stdout


def named(facts: list[RunFact], name: str) -> list[dict[str, object]]:
    """Fields of every fact of one name, in order."""
    return [dict(fact.fields) for fact in facts if fact.fact == name]


def committed_before(facts: list[RunFact], name: str) -> list[dict[str, object]]:
    """Checkpoints committed before the second attempt chose its target, oldest first."""
    seen: list[dict[str, object]] = []
    for fact in facts:
        if fact.fact == "CheckpointCommitted":
            seen.append(dict(fact.fields))
        elif fact.fact == "ResumeTargetChosen" and seen:
            return seen
    return seen


def trainer_pid(facts: list[RunFact], rank: int) -> int:
    """Process id of a rank's trainer, from the fact that it was started."""
    started = named(facts, "AttemptStarted")[-1]
    return next(entry["trainer_pid"] for entry in started["ranks"] if entry["rank"] == rank)


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
