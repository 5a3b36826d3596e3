-- Runs, their decisions and waits.

create or replace view training_runs as
with
  if(specs.run_id = '', refusals.project, specs.project) as project_name,
  phases.phase in ('SUCCEEDED', 'FAILED', 'CANCELLED', 'REFUSED') as is_over
select
  phases.run_id as run_id,
  concat('projects/', project_name, '/runs/', phases.run_id) as name,
  phases.phase as phase,
  phases.since as phase_since,
  phases.reason as phase_reason,
  phases.message as phase_message,
  if(specs.run_id = '', refusals.refused_at, specs.submitted_at) as submitted_at,
  if(is_over, phases.since, null) as ended_at,
  tried.attempts as attempts,
  tried.newest_reason as termination_reason,
  kept.checkpoint as last_committed,
  kept.step as last_committed_step,
  tried.steps_lost as steps_lost,
  tried.queue_seconds as queue_seconds,
  tried.wall_seconds as wall_seconds,
  tried.productive_seconds as productive_seconds,
  tried.lost_seconds as lost_seconds,
  tried.gpu_seconds as gpu_seconds,
  tried.cost as cost,
  judged.evaluation_id as evaluation_id,
  judged.verdict as evaluation_verdict,
  phases.result as result,
  phases.result_digest as result_digest,
  cancels.cancelled_by as cancelled_by,
  cancels.cancel_reason as cancel_reason,
  if(refusals.run_id = '', '[]', refusals.violations) as violations,
  project_name as project,
  if(specs.run_id = '', refusals.model_family, specs.model_family) as model_family,
  if(specs.run_id = '', refusals.owner, specs.owner) as owner,
  specs.* except (run_id, version, submitted_at, project, model_family, owner)
from run_phases_state as phases final
left join run_specs_state as specs final on specs.run_id = phases.run_id
left join run_refusals_state as refusals final on refusals.run_id = phases.run_id
left join run_cancels_state as cancels final on cancels.run_id = phases.run_id
left join
(
  select
    run_id,
    count() as attempts,
    argMax(termination_reason, attempt) as newest_reason,
    sum(steps_lost) as steps_lost,
    -- Sums of floats hang on their order: by attempt.
    arraySum(pair -> pair.2, arraySort(groupArray((attempt, queue_seconds)))) as queue_seconds,
    arraySum(pair -> pair.2, arraySort(groupArray((attempt, wall_seconds)))) as wall_seconds,
    arraySum(pair -> pair.2, arraySort(groupArray((attempt, productive_seconds)))) as productive_seconds,
    arraySum(pair -> pair.2, arraySort(groupArray((attempt, lost_seconds)))) as lost_seconds,
    arraySum(pair -> pair.2, arraySort(groupArray((attempt, gpu_seconds)))) as gpu_seconds,
    arraySum(pair -> pair.2, arraySort(groupArray((attempt, cost)))) as cost
  from training_attempts
  group by run_id
) as tried on tried.run_id = phases.run_id
left join
(
  select run_id, argMax(checkpoint, slot) as checkpoint, toNullable(argMax(step, slot)) as step
  from checkpoint_commits_state final
  where (run_id, slot) not in (
    select run_id, commit_slot
    from checkpoint_slots_state
    where fact in ('CheckpointQuarantined', 'CheckpointTombstoned')
  )
  group by run_id
) as kept on kept.run_id = phases.run_id
left join
(
  select
    requests.run_id as run_id,
    argMax(requests.evaluation_id, requests.version) as evaluation_id,
    argMax(toString(ends.verdict), requests.version) as verdict
  from evaluation_requests_state as requests final
  left join evaluation_ends_state as ends final
    on ends.run_id = requests.run_id and ends.evaluation_id = requests.evaluation_id
  where requests.final
  group by requests.run_id
) as judged on judged.run_id = phases.run_id;

create or replace view retry_decisions as
select
  decisions.run_id as run_id,
  decisions.attempt as attempt,
  specs.project as project,
  specs.model_family as model_family,
  decisions.reason as reason,
  decisions.move as move,
  decisions.ledger as ledger,
  decisions.spent as spent,
  decisions.budget as budget,
  decisions.backoff_seconds as backoff_seconds,
  decisions.not_before as not_before,
  decisions.why as why,
  decisions.changes as changes,
  decisions.progress as progress,
  decisions.last_committed as last_committed,
  decisions.decided_at as decided_at
from retry_decisions_state as decisions final
left join run_specs_state as specs final on specs.run_id = decisions.run_id;

-- What was spent of which budget, decision by decision: the run's own, and the evaluator's.
create or replace view budget_ledger as
select
  run_id, 'run' as spender, '' as evaluation_id, attempt, ledger, spent, toInt64(budget) as budget, reason, move,
  decided_at as at
from retry_decisions_state final
where ledger != ''
union all
select
  run_id, 'evaluation' as spender, evaluation_id, evaluation_attempt as attempt, failure as ledger, spent,
  toInt64(budget) as budget, failure as reason, move, failed_at as at
from evaluation_failures_state final;

-- Every wait in the queue; `placed_at` is null while it lasts, or when the run was queued again instead.
create or replace view queue_waits as
select
  waits.run_id as run_id,
  waits.attempt as attempt,
  specs.project as project,
  specs.model_family as model_family,
  specs.compute_class as compute_class,
  if(placed.attempt > 0, placed.pool, '') as pool,
  waits.queued_at as queued_at,
  waits.not_before as not_before,
  greatest(0., dateDiff('microsecond', waits.queued_at, waits.not_before) / 1e6) as backoff_seconds,
  if(is_placed, placed.placed_at, null) as placed_at,
  if(is_placed, dateDiff('microsecond', waits.queued_at, placed.placed_at) / 1e6, null) as wait_seconds,
  placed.attempt > 0 and waits.version < placed.version and waits.version = newest.version as is_placed
from attempt_queue_state as waits final
left join (
  select run_id, attempt, max(version) as version from attempt_queue_state group by run_id, attempt
) as newest on newest.run_id = waits.run_id and newest.attempt = waits.attempt
left join attempt_placements_state as placed final
  on placed.run_id = waits.run_id and placed.attempt = waits.attempt
left join run_specs_state as specs final on specs.run_id = waits.run_id;
