-- Goodput: what every second of an attempt was spent on, by its session's clocks and by what later facts kept.

alter table attempt_ends_state
  add column if not exists restore_seconds Float64,
  add column if not exists data_wait_seconds Float64,
  add column if not exists stall_seconds Float64,
  add column if not exists step_seconds Float64,
  add column if not exists phases_at Nullable(DateTime64(6, 'UTC')),
  add column if not exists last_progress_at Nullable(DateTime64(6, 'UTC'));

alter table checkpoint_captures_state
  add column if not exists restore_seconds Float64,
  add column if not exists data_wait_seconds Float64,
  add column if not exists stall_seconds Float64,
  add column if not exists step_seconds Float64,
  add column if not exists phases_at Nullable(DateTime64(6, 'UTC'));

create or replace view attempt_marks_folded as
select
  run_id,
  attempt,
  minOrNullIf(at, fact = 'AttemptStarting') as starting_at,
  minOrNullIf(at, fact = 'AttemptStarted') as ranks_started_at,
  minOrNullIf(at, fact = 'AttemptRunning') as first_step_at,
  countIf(fact = 'AttemptStopping') > 0 as is_stopping,
  minOrNullIf(at, fact = 'AttemptStopping') as stopping_at,
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

-- Lowest step that a later attempt went back to: what came after it was repeated.
create or replace view attempt_resumes_folded as
select
  earlier.run_id as run_id,
  earlier.attempt as attempt,
  minOrNullIf(ifNull(later.checkpoint_step, 0), later.attempt > earlier.attempt) as resumed_step
from (select distinct run_id, attempt from attempt_marks_state) as earlier
inner join
(
  select run_id, attempt, checkpoint_step from attempt_marks_state final where fact = 'ResumeTargetChosen'
) as later on later.run_id = earlier.run_id
group by earlier.run_id, earlier.attempt;

-- Captures of an attempt. Kept is what was committed, and neither quarantined nor passed over by a later attempt since.
-- `kept_at` is the newest of those, by its session's own word where it has one.
create or replace view attempt_captures_folded as
select
  captures.run_id as run_id,
  captures.attempt as attempt,
  -- Sorted, because a sum of floats hangs on its order.
  arraySort(groupArray((captures.started_at, captures.blocked_seconds))) as stalls,
  countIf(captures.has_clocks) > 0 as is_capture_measured,
  maxOrNullIf(captures.captured_at, captures.is_kept) as kept_at,
  argMaxIf(captures.clocks, (captures.captured_at, captures.step), captures.is_kept) as kept_clocks
from
(
  select
    made.run_id as run_id,
    made.attempt as attempt,
    made.step as step,
    made.started_at as started_at,
    made.blocked_seconds as blocked_seconds,
    made.phases_at is not null as has_clocks,
    coalesce(made.phases_at, made.started_at) as captured_at,
    (has_clocks, made.restore_seconds, made.data_wait_seconds, made.stall_seconds, made.step_seconds) as clocks,
    kept.run_id != '' and (resumes.resumed_step is null or made.step <= resumes.resumed_step) as is_kept
  from checkpoint_captures_state as made final
  left join
  (
    select run_id, checkpoint from checkpoint_commits_state final
    where (run_id, slot) not in (
      select run_id, commit_slot from checkpoint_slots_state where fact = 'CheckpointQuarantined'
    )
  ) as kept on kept.run_id = made.run_id and kept.checkpoint = made.checkpoint
  left join attempt_resumes_folded as resumes on resumes.run_id = made.run_id and resumes.attempt = made.attempt
) as captures
group by captures.run_id, captures.attempt;

-- What the split of an attempt's time needs, and nothing else: a narrow row is planned in a fraction of the time.
create or replace view attempt_times as
select
  placed.run_id as run_id,
  placed.attempt as attempt,
  placed.placed_at as placed_time,
  ends.attempt > 0 as is_ended,
  if(is_ended, ends.ended_at, if(ruled.attempt > 0, ruled.ruled_at, null)) as ended_time,
  toString(ends.reason) as end_reason,
  if(is_ended, ends.failed_at, null) as span_failed,
  if(is_ended, ends.started_at, null) as end_started_at,
  if(is_ended, ends.last_progress_at, null) as last_progress,
  ends.phases_at is not null as is_end_measured,
  (is_end_measured, ends.restore_seconds, ends.data_wait_seconds, ends.stall_seconds, ends.step_seconds) as end_clocks,
  marks.ranks_started_at as ranks_started_at,
  marks.first_step_at as first_step_at,
  marks.stopping_at as stopping_at,
  captures.stalls as stalls,
  captures.is_capture_measured as is_capture_measured,
  captures.kept_at as kept_at,
  captures.kept_clocks as kept_clocks
from attempt_placements_state as placed final
left join attempt_rulings_state as ruled final on ruled.run_id = placed.run_id and ruled.attempt = placed.attempt
left join attempt_ends_state as ends final on ends.run_id = placed.run_id and ends.attempt = placed.attempt
left join attempt_marks_folded as marks on marks.run_id = placed.run_id and marks.attempt = placed.attempt
left join attempt_captures_folded as captures on captures.run_id = placed.run_id and captures.attempt = placed.attempt;

-- An attempt's marks in order, whatever the clocks of their writers said. Level by level, because a name that is
-- used twice is worked out twice. Clocks are (measured, restore, data wait, stall, step). Not part of the contract.
create or replace view attempt_seconds as
select
  run_id,
  attempt,
  if(is_spanned, dateDiff('microsecond', placed_time, span_end) / 1e6, 0.) as wall_seconds,
  begin_seconds - restored as startup_seconds,
  restored as restore_seconds,
  if(is_clocked, least(kept_seconds - kept_wait - kept_stall, clocks.5), kept_seconds - kept_stall)
    as productive_seconds,
  kept_wait as data_wait_seconds,
  kept_stall as stall_seconds,
  if(is_worked, dateDiff('microsecond', kept_until, worked_until) / 1e6, 0.) as lost_seconds,
  if(is_spanned, dateDiff('microsecond', worked_until, stopped_at) / 1e6, 0.) as hang_seconds,
  if(is_spanned, dateDiff('microsecond', stopped_at, span_end) / 1e6, 0.) as idle_seconds,
  kept_seconds - kept_wait - kept_stall - productive_seconds as unattributed_seconds
from
(
  select
    *,
    least(kept_seconds - kept_wait, if(is_clocked, clocks.4, stalled_seconds)) as kept_stall
  from
  (
    select
      *,
      if(is_clocked, least(kept_seconds, clocks.3), 0.) as kept_wait,
      least(begin_seconds, if(is_end_measured, end_clocks.2, if(has_kept, kept_clocks.2, 0.))) as restored,
      arraySum(stall -> if(stall.1 < kept_until, stall.2, 0.), stalls) as stalled_seconds
    from
    (
      select
        *,
        clocks.1 and is_stepped as is_clocked,
        if(is_spanned, dateDiff('microsecond', placed_time, if(is_worked, span_begin, worked_until)) / 1e6, 0.)
          as begin_seconds,
        if(is_worked, dateDiff('microsecond', span_begin, kept_until) / 1e6, 0.) as kept_seconds
      from
      (
        select
          *,
          if(is_hung, hung_until, worked_until) as stopped_at,
          if(is_finished, end_clocks, kept_clocks) as clocks,
          least(greatest(if(is_finished, worked_until, coalesce(kept_at, span_begin)), span_begin), worked_until)
            as kept_until
        from
        (
          select
            *,
            least(
              greatest(
                coalesce(if(is_hung or (is_finished and is_stepped), last_progress, null), span_failed, span_end),
                span_begin),
              if(is_hung, hung_until, span_end)
            ) as worked_until
          from
          (
            select
              *,
              least(greatest(coalesce(stopping_at, span_failed, span_end), span_begin), span_end) as hung_until
            from
            (
              select
                *,
                is_spanned and began_time is not null as is_worked,
                least(greatest(coalesce(began_time, placed_time), placed_time), span_end) as span_begin
              from
              (
                select
                  *,
                  ended_time is not null as is_spanned,
                  greatest(assumeNotNull(ended_time), placed_time) as span_end,
                  first_step_at is not null as is_stepped,
                  coalesce(
                    first_step_at,
                    if(
                      (is_end_measured or is_capture_measured) and not is_finished and not has_kept,
                      null,
                      coalesce(ranks_started_at, end_started_at)
                    )
                  ) as began_time
                from
                (
                  select
                    *,
                    kept_at is not null as has_kept,
                    is_ended and end_reason in ('COMPLETED', 'EARLY_STOPPED') as is_finished,
                    is_ended and end_reason in ('STALLED', 'COLLECTIVE_TIMEOUT') and last_progress is not null
                      as is_hung
                  from attempt_times
                )
              )
            )
          )
        )
      )
    )
  )
);

create or replace view attempt_captures_counted as
select run_id, attempt, count() as capture_count from checkpoint_captures_state final group by run_id, attempt;

-- All parts of an attempt side by side, before anything is computed. Not part of the contract.
create or replace view attempt_joined as
select
  base.run_id as run_id,
  base.attempt as attempt,
  specs.* except (run_id, version, submitted_at, request_digest, actor),
  placed.attempt > 0 as is_placed,
  placed.epoch as epoch,
  placed.pool as pool,
  placed.agent_id as agent_id,
  placed.placement as placement,
  placed.changes as changes,
  placed.placed_at as placed_time,
  placed.queue_seconds as queue_seconds,
  placed.accelerators as placed_accelerators,
  ruled.attempt > 0 as is_ruled,
  ruled.kind as ruling_kind,
  ruled.reason as ruling_reason,
  ruled.domain as ruling_domain,
  ruled.message as ruling_message,
  ruled.evidence as ruling_evidence,
  ruled.failed_at as ruling_failed_at,
  ruled.ruled_at as ruled_time,
  ends.attempt > 0 as is_ended,
  ends.reason as end_reason,
  ends.domain as end_domain,
  ends.confidence as end_confidence,
  ends.cause as end_cause,
  ends.fingerprint as end_fingerprint,
  ends.classifier_version as end_classifier,
  ends.blamed_rank as end_blamed_rank,
  ends.blamed_node as end_blamed_node,
  ends.evidence as end_evidence,
  ends.failed_at as end_failed_at,
  ends.rank_ends as end_ranks,
  ends.accelerators as end_accelerators,
  ends.gpu_seconds as end_gpu_seconds,
  ends.started_at as end_started_at,
  ends.ended_at as end_time,
  ends.first_step as end_first_step,
  ends.last_step as end_last_step,
  ends.resumed_from as end_resumed_from,
  ends.resumed_from_step as end_resumed_from_step,
  ends.resumed_from_digest as end_resumed_from_digest,
  ends.last_committed as end_last_committed,
  ends.last_committed_step as end_last_committed_step,
  ends.last_committed_digest as end_last_committed_digest,
  ends.last_metrics as end_last_metrics,
  marks.* except (run_id, attempt),
  environments.digests as observed_digests,
  environments.differs as is_different,
  beats.attempt > 0 as is_seen,
  beats.seen_at as seen_time,
  beats.seen_step as seen_step,
  commits.commits as commits,
  captures.capture_count as capture_count,
  seconds.wall_seconds as wall_seconds,
  seconds.startup_seconds as startup_seconds,
  seconds.restore_seconds as restore_seconds,
  seconds.productive_seconds as productive_seconds,
  seconds.data_wait_seconds as data_wait_seconds,
  seconds.stall_seconds as stall_seconds,
  seconds.lost_seconds as lost_seconds,
  seconds.hang_seconds as hang_seconds,
  seconds.idle_seconds as idle_seconds,
  seconds.unattributed_seconds as unattributed_seconds,
  abandons.abandon_count as abandon_count,
  evaluations.judged as judged,
  evaluations.versions as judge_versions,
  queued.attempt > 0 as is_queued,
  queued.first_queued_at as queued_time,
  decisions.attempt > 0 as is_decided,
  decisions.move as decision_move,
  decisions.why as decision_why,
  decisions.ledger as decision_ledger,
  decisions.spent as decision_spent,
  decisions.budget as decision_budget,
  decisions.backoff_seconds as decision_backoff
from
(
  select run_id, attempt from attempt_placements_state
  union distinct
  select run_id, attempt from attempt_rulings_state
) as base
inner join run_specs_state as specs final on specs.run_id = base.run_id
left join attempt_placements_state as placed final on placed.run_id = base.run_id and placed.attempt = base.attempt
left join attempt_rulings_state as ruled final on ruled.run_id = base.run_id and ruled.attempt = base.attempt
left join attempt_ends_state as ends final on ends.run_id = base.run_id and ends.attempt = base.attempt
left join attempt_marks_folded as marks on marks.run_id = base.run_id and marks.attempt = base.attempt
left join attempt_environments_folded as environments
  on environments.run_id = base.run_id and environments.attempt = base.attempt
left join attempt_heartbeats_folded as beats on beats.run_id = base.run_id and beats.attempt = base.attempt
left join attempt_commits_folded as commits on commits.run_id = base.run_id and commits.commit_epoch = placed.epoch
left join attempt_captures_counted as captures on captures.run_id = base.run_id and captures.attempt = base.attempt
left join attempt_seconds as seconds on seconds.run_id = base.run_id and seconds.attempt = base.attempt
left join attempt_abandons_folded as abandons on abandons.run_id = base.run_id and abandons.attempt = base.attempt
left join attempt_evaluations_folded as evaluations
  on evaluations.run_id = base.run_id and evaluations.evaluated_epoch = placed.epoch
left join attempt_queue_folded as queued on queued.run_id = base.run_id and queued.attempt = base.attempt
left join retry_decisions_state as decisions final
  on decisions.run_id = base.run_id and decisions.attempt = base.attempt;

-- One row per attempt: the whole receipt. The same as trackway_common.history.receipt computes from the facts.
create or replace view training_attempts as
with
  if(is_ended, end_time, if(is_ruled, ruled_time, null)) as ended_time,
  is_ended and end_reason in ('COMPLETED', 'EARLY_STOPPED') as is_finished,
  notEmpty(commits) as has_commits,
  commits[-1] as newest,
  is_ended and end_last_committed != '' as has_last,
  if(is_target_chosen, target, if(is_ended, end_resumed_from, '')) as resume_name,
  if(is_target_chosen, target_step, if(is_ended, end_resumed_from_step, null)) as resume_step,
  if(is_target_chosen, target_digest, if(is_ended, end_resumed_from_digest, '')) as resume_digest,
  if(is_ended, end_last_step, seen_step) as reached_step,
  coalesce(ended_time, if(is_seen, seen_time, null)) as held_until,
  coalesce(ranks_started_at, if(is_placed, placed_time, null)) as held_from
select
  run_id,
  attempt,
  concat('projects/', project, '/runs/', run_id, '/attempts/', toString(attempt)) as name,
  multiIf(
    is_ended or is_ruled, 'ENDED',
    is_stopping, 'STOPPING',
    first_step_at is not null or ranks_started_at is not null, 'RUNNING',
    starting_at is not null, 'STARTING',
    'PLACED') as state,
  multiIf(is_ruled, toString(ruling_reason), is_ended, toString(end_reason), 'IN_PROGRESS') as termination_reason,
  multiIf(is_ruled, toString(ruling_domain), is_ended, toString(end_domain), '') as domain,
  multiIf(ruling_kind = 'WRITTEN_OFF', 0.5, is_ended, end_confidence, is_ruled, 1., 0.) as confidence,
  multiIf(is_ruled, ruling_message, is_ended, end_cause, '') as cause,
  if(is_ended, end_fingerprint, '') as fingerprint,
  if(is_ended, toString(end_classifier), '') as classifier_version,
  if(is_ended, end_blamed_rank, null) as blamed_rank,
  if(is_ended, toString(end_blamed_node), '') as blamed_node,
  multiIf(is_ruled, ruling_evidence, is_ended, end_evidence, '[]') as evidence,
  multiIf(is_ruled, ruling_failed_at, is_ended, end_failed_at, null) as failed_at,
  if(is_queued, queued_time, null) as queued_at,
  if(is_placed, placed_time, null) as placed_at,
  starting_at,
  coalesce(ranks_started_at, if(is_ended, end_started_at, null), placed_at, ended_time) as started_at,
  first_step_at,
  if(is_seen, seen_time, null) as last_seen_at,
  ended_time as ended_at,
  queue_seconds,
  wall_seconds,
  startup_seconds,
  restore_seconds,
  productive_seconds,
  data_wait_seconds,
  stall_seconds,
  lost_seconds,
  hang_seconds,
  idle_seconds,
  unattributed_seconds,
  if(is_ended, end_accelerators, placed_accelerators) as accelerators,
  if(
    is_ended,
    end_gpu_seconds,
    placed_accelerators * greatest(0., ifNull(dateDiff('microsecond', held_from, held_until) / 1e6, 0.))
  ) as gpu_seconds,
  gpu_seconds / 3600 * price as cost,
  epoch,
  pool,
  agent_id,
  cluster as cluster_id,
  rank_nodes as nodes,
  if(is_placed, placement, '[]') as placement,
  if(rank_starts = '', '[]', rank_starts) as ranks,
  if(is_ended, end_ranks, '[]') as rank_ends,
  observed_digests as observed_environments,
  is_different as environment_differs,
  resume_name as resumed_from,
  resume_step as resumed_from_step,
  resume_digest as resumed_from_digest,
  arrayMap(c -> c.2, commits) as produced,
  multiIf(has_commits, newest.2, has_last, end_last_committed, resume_name)
    as last_committed,
  multiIf(has_commits, newest.3, has_last, end_last_committed_step, resume_step)
    as last_committed_step,
  multiIf(has_commits, newest.4, has_last, end_last_committed_digest, resume_digest)
    as last_committed_digest,
  capture_count as captures,
  abandon_count as captures_abandoned,
  if(first_step_at is not null, running_step, if(is_ended, end_first_step, 0)) as first_step,
  reached_step as last_step,
  if(
    is_ended and not is_finished and reached_step > ifNull(last_committed_step, 0),
    reached_step - ifNull(last_committed_step, 0),
    0
  ) as steps_lost,
  if(is_ended, end_last_metrics, '[]') as last_metrics,
  arrayMap(j -> j.2, judged) as evaluation_ids,
  judge_versions as evaluator_versions,
  arrayMap(j -> j.3, judged) as evaluation_verdicts,
  attempt - 1 as retry_number,
  if(is_placed, changes, '[]') as changes,
  if(is_decided, toString(decision_move), '') as next_move,
  decision_why as next_move_why,
  decision_ledger as ledger,
  decision_spent as ledger_spent,
  if(is_decided, decision_budget, null) as ledger_budget,
  decision_backoff as backoff_seconds,
  project, model_family, owner, criticality, experiment, hypothesis, labels, trigger_kind, trigger_ref,
  spec_digest, config_digest, config_json, seed, seed_drawn, deterministic, entrypoint_kind, entrypoint,
  dataset_names, dataset_digests, dataset_weights,
  code_requested, code_digest, git_commit, dirty_diff_digest,
  runtime_kind, environment_digest, python_version, evaluation_pack, evaluation_pack_digest,
  compute_class, accelerator_kind, preemptible, price, currency, price_since,
  world_size, strategy, precision, keep_last, in_flight, max_attempts,
  trace_id
from attempt_joined;

-- Its place was taken by attempt_seconds.
drop view if exists attempt_spans;
