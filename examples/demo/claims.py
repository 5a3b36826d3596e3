"""What the demo claims: each claim is a function that returns what it saw, or raises Untrue."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from story import Claims, Story, attempt, evaluation, first, last_of, named, of_attempt, result, untrue
from trackway_common.events import EvaluationPhase, NextMove, RunPhase, TerminationReason

SEED_QUERY = """\
select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours
from training_attempts
where model_family = 'reasoning' and started_at >= now() - interval '7 days'
group by termination_reason order by gpu_hours desc;"""

# What the log says.


def rank_1_was_killed(story: Story) -> str:
    if not story.killed_after:
        untrue("it was not: no checkpoint was committed, or it had ended by itself")
    return story.facts[story.killed_after - 1].summary


def killed_attempt_has_its_reason(story: Story) -> object:
    reason = of_attempt(story, 1, "AttemptEnded")["reason"]
    return reason if reason == TerminationReason.UNKNOWN_KILL else untrue(reason)


def rank_1_is_blamed(story: Story) -> object:
    blamed = of_attempt(story, 1, "AttemptEnded")["blamed_rank"]
    return f"rank {blamed}" if blamed == 1 else untrue(f"rank {blamed}")


def retry_names_its_budget(story: Story) -> str:
    decided = first(story.facts, "RetryDecided")
    said = f"{decided['move']}: {decided['spent']} of {decided['budget']} of ledger {decided['ledger']}"
    expected = (NextMove.RETRY, TerminationReason.UNKNOWN_KILL, 1)
    return said if (decided["move"], decided["ledger"], decided["spent"]) == expected else untrue(said)


def first_began_at_step_0(story: Story) -> str:
    checkpoint = of_attempt(story, 1, "ResumeTargetChosen")["checkpoint"]
    return "no checkpoint" if checkpoint is None else untrue(f"step {checkpoint['step']}")


def second_resumed_at_the_last_commit(story: Story) -> str:
    """What was captured before the kill may be committed after it: its actor outlives the trainer. It counts."""
    killed = first(story.facts, "AttemptPlaced")["epoch"]
    commits = [commit["checkpoint"] for commit in named(story.facts, "CheckpointCommitted")]
    before = [commit["checkpoint"] for commit in named(story.facts[: story.killed_after], "CheckpointCommitted")]
    last = last_of([checkpoint for checkpoint in commits if checkpoint["epoch"] == killed], "commit of attempt 1")
    resumed = of_attempt(story, 2, "ResumeTargetChosen")["checkpoint"]
    if resumed != last:
        untrue(f"step {resumed['step'] if resumed else 0}, but the last commit is of step {last['step']}")
    return f"step {last['step']}" + ("" if last in before else ", captured before the kill and committed after it")


def second_went_on_behind_it(story: Story) -> str:
    resumed = of_attempt(story, 2, "ResumeTargetChosen")["checkpoint"]
    step = of_attempt(story, 2, "AttemptRunning")["first_step"]
    return f"step {step}" if resumed and step == resumed["step"] + 1 else untrue(f"step {step}")


LOG: Claims = (
    ("rank 1's trainer was killed once a checkpoint was committed", rank_1_was_killed),
    ("the killed attempt was closed with its reason", killed_attempt_has_its_reason),
    ("rank 1 is blamed", rank_1_is_blamed),
    ("the retry names the budget that it spends", retry_names_its_budget),
    ("the first attempt found no checkpoint", first_began_at_step_0),
    ("the second resumed from the first attempt's last committed checkpoint", second_resumed_at_the_last_commit),
    ("and went on at the next step", second_went_on_behind_it),
)


# What the services report.


def run_succeeded_in_two_attempts(story: Story) -> str:
    run = story.client.get_run(story.run_id)
    seen = f"{run.phase} after {run.attempt} attempts"
    return seen if (run.phase, run.attempt) == (RunPhase.SUCCEEDED, 2) else untrue(f"{seen}. {run.message}")


def first_receipt_holds_the_reason(story: Story) -> str:
    receipt = attempt(story, 1)
    return receipt.cause if receipt.reason is TerminationReason.UNKNOWN_KILL else untrue(receipt.reason)


def second_receipt_is_completed(story: Story) -> str:
    receipt = attempt(story, 2)
    steps = f"steps {receipt.first_step}–{receipt.last_step}"
    return steps if receipt.reason is TerminationReason.COMPLETED else untrue(f"{receipt.reason}, {steps}")


def evaluation_completed(story: Story) -> str:
    phase = evaluation(story).phase
    return f"{phase}, {result(story).verdict}" if phase is EvaluationPhase.COMPLETED else untrue(phase)


def it_judged_the_last_committed_weights(story: Story) -> str:
    last, judged = story.client.get_run(story.run_id).last_committed, result(story).checkpoint
    if last is None or judged.manifest_digest != last.manifest_digest:
        untrue(f"step {judged.step}, but the last commit is of step {last.step if last else 0}")
    return f"step {judged.step}"


def every_sample_was_scored(story: Story) -> str:
    counts = [f"{task.task}: {task.scored} of {task.planned}" for task in result(story).tasks]
    whole = counts and all(task.scored == task.planned > 0 for task in result(story).tasks)
    return ", ".join(counts) if whole else untrue(", ".join(counts) or "no task")


def raw_outputs_can_be_read(story: Story) -> str:
    """Fetched by the digest in the fact, which the client compares with the bytes, and opened as Parquet."""
    shards = [shard for shard in result(story).shards if shard.kind == "samples" and shard.task == "complete-line"]
    shard = last_of(shards, "shard of samples of complete-line")
    try:
        rows = pq.read_table(io.BytesIO(story.client.blob(shard.digest))).to_pylist()
    except pa.ArrowException as error:
        untrue(f"{shard.digest} is no Parquet: {error}")
    spoken = [row for row in rows if row["prompt"] and row["output"]]
    if not len(rows) == len(spoken) == shard.rows > 0:
        untrue(f"{len(spoken)} prompts with an output in {len(rows)} rows, the fact says {shard.rows}")
    return f"{len(rows)} in {shard.digest[:19]}…, such as {spoken[0]['prompt'][-20:]!r} → {spoken[0]['output'][:20]!r}"


def every_byte_verifies(story: Story) -> str:
    last = story.client.get_run(story.run_id).last_committed
    if last is None:
        untrue("nothing is committed")
    found = story.client.verify_checkpoint(f"{story.run_id}/{last.step}")
    return f"{found.files} files, {found.size_bytes} bytes" if found.ok else untrue("; ".join(found.problems))


SERVICES: Claims = (
    ("the run succeeded in two attempts", run_succeeded_in_two_attempts),
    ("the first receipt holds the reason", first_receipt_holds_the_reason),
    ("the second attempt completed", second_receipt_is_completed),
    ("the run's evaluation completed", evaluation_completed),
    ("it judged the last committed weights", it_judged_the_last_committed_weights),
    ("every planned sample was scored", every_sample_was_scored),
    ("raw outputs are kept", raw_outputs_can_be_read),
    ("every byte of the last checkpoint verifies", every_byte_verifies),
)


# What SQL and the explanation say.


def query_counts_each_attempt_once(story: Story) -> str:
    counts = {reason: int(row["attempts"]) for reason, row in seed_rows(story).items()}
    seen = ", ".join(f"{reason} {count}" for reason, count in counts.items())
    return seen if counts == {"UNKNOWN_KILL": 1, "COMPLETED": 1} else untrue(seen or "no rows")


def query_has_the_hours_of_the_receipts(story: Story) -> str:
    hours = {reason: float(row["gpu_hours"]) for reason, row in seed_rows(story).items()}
    seen = ", ".join(f"{reason} {value:.4f}" for reason, value in hours.items())
    for receipt in (attempt(story, 1), attempt(story, 2)):
        said = hours.get(receipt.reason, 0.0)
        if said <= 0 or not math.isclose(said, receipt.gpu_seconds / 3600, rel_tol=1e-6):
            untrue(f"{seen}, but attempt {receipt.attempt} took {receipt.gpu_seconds / 3600:.4f}")
    return seen


SQL: Claims = (
    ("it counts each attempt once, by its reason", query_counts_each_attempt_once),
    ("its hours are those of the receipts", query_has_the_hours_of_the_receipts),
)


def explanation(text: str) -> Claims:
    """Claims about what `trackway explain` printed for the killed attempt."""
    words = ("UNKNOWN_KILL", "SIGKILL", "rank 1", "stdlib")
    told = tuple((f"it says {word}", lambda _, word=word: says(text, word)) for word in words)
    return (*told, ("it says what came next", lambda story: says_what_came_next(text, story)))


def says_what_came_next(text: str, story: Story) -> str:
    resumed = of_attempt(story, 2, "ResumeTargetChosen")["checkpoint"] or {"step": 0}
    return says(text, f"attempt 2, which resumed at step {resumed['step']}")


def says(text: str, word: str) -> str:
    """The first line that holds a word."""
    line = next((line for line in text.splitlines() if word.lower() in line.lower()), None)
    return line.strip() if line is not None else untrue(f"nothing of {word!r}")


def seed_rows(story: Story) -> dict[str, Mapping[str, Any]]:
    """Rows of the query that the product was asked for, by reason."""
    answer = story.client.query(SEED_QUERY)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    return {str(row["termination_reason"]): row for row in rows}
