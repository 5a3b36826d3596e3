-- What `training_attempts` is joined from: one row per attempt, each from one topic. Not part of the contract.

create or replace view attempt_marks_folded as
select
  run_id,
  attempt,
  minOrNullIf(at, fact = 'AttemptStarting') as starting_at,
  minOrNullIf(at, fact = 'AttemptStarted') as ranks_started_at,
  minOrNullIf(at, fact = 'AttemptRunning') as first_step_at,
  countIf(fact = 'AttemptStopping') > 0 as is_stopping,
  countIf(fact = 'ResumeTargetChosen') > 0 as is_target_chosen,
  anyIf(checkpoint, fact = 'ResumeTargetChosen') as target,
  anyIf(checkpoint_step, fact = 'ResumeTargetChosen') as target_step,
  anyIf(checkpoint_digest, fact = 'ResumeTargetChosen') as target_digest,
  anyIf(toString(cluster_id), fact = 'AttemptStarted') as cluster,
  anyIf(nodes, fact = 'AttemptStarted') as rank_nodes,
  anyIf(ranks, fact = 'AttemptStarted') as rank_starts,
  anyIf(first_step, fact = 'AttemptRunning') as running_step
from attempt_marks_state final
group by run_id, attempt;

create or replace view attempt_environments_folded as
select
  run_id,
  attempt,
  arraySort(groupUniqArray(environment_digest)) as digests,
  max(differs_from_pinned) as differs
from attempt_environments_state final
group by run_id, attempt;

create or replace view attempt_heartbeats_folded as
select run_id, attempt, max(at) as seen_at, max(last_step) as seen_step
from rank_heartbeats_state final
group by run_id, attempt;

-- Commits of an attempt, oldest first, by the epoch that wrote them.
create or replace view attempt_commits_folded as
select
  run_id,
  epoch as commit_epoch,
  arraySort(groupArray((slot, checkpoint, step, manifest_digest))) as commits
from checkpoint_commits_state final
group by run_id, epoch;

-- Captures of an attempt; `kept_at` is the newest whose checkpoint was committed and not quarantined since.
create or replace view attempt_captures_folded as
select
  captures.run_id as run_id,
  captures.attempt as attempt,
  count() as capture_count,
  -- Sorted, because a sum of floats hangs on its order.
  arraySort(groupArray((captures.started_at, captures.blocked_seconds))) as stalls,
  maxOrNullIf(captures.started_at, kept.run_id != '') as kept_at
from
(
  select run_id, attempt, started_at, blocked_seconds, checkpoint from checkpoint_captures_state final
) as captures
left join
(
  select run_id, checkpoint from checkpoint_commits_state final
  where (run_id, slot) not in (
    select run_id, commit_slot from checkpoint_slots_state where fact = 'CheckpointQuarantined'
  )
) as kept on kept.run_id = captures.run_id and kept.checkpoint = captures.checkpoint
group by captures.run_id, captures.attempt;

create or replace view attempt_abandons_folded as
select run_id, attempt, count() as abandon_count
from checkpoint_abandons_state final
group by run_id, attempt;

-- Evaluations of what an attempt produced, in the order in which they were asked for.
create or replace view attempt_evaluations_folded as
select
  requests.run_id as run_id,
  requests.checkpoint_epoch as evaluated_epoch,
  arraySort(groupArray((
    requests.version,
    requests.evaluation_id,
    multiIf(
      ends.phase = 'COMPLETED', toString(ends.verdict),
      ends.phase = 'EXHAUSTED', 'EXHAUSTED',
      tries.evaluation_id != '', 'RUNNING',
      'REQUESTED')
  ))) as judged,
  arraySort(groupUniqArrayIf(toString(ends.evaluator_version), ends.phase = 'COMPLETED')) as versions
from evaluation_requests_state as requests final
left join evaluation_ends_state as ends final
  on ends.run_id = requests.run_id and ends.evaluation_id = requests.evaluation_id
left join (select distinct run_id, evaluation_id from evaluation_tries_state) as tries
  on tries.run_id = requests.run_id and tries.evaluation_id = requests.evaluation_id
group by requests.run_id, requests.checkpoint_epoch;

-- First place in the queue of each attempt.
create or replace view attempt_queue_folded as
select run_id, attempt, argMin(queued_at, version) as first_queued_at
from attempt_queue_state final
group by run_id, attempt;
