-- An attempt's marks in order, whatever the clocks of their writers said. Level by level, because a name that is
-- used twice is worked out twice. Not part of the contract.
create or replace view attempt_spans as
select
  *,
  if(is_worked, dateDiff('microsecond', span_begin, kept_until) / 1e6, 0.) as kept_seconds,
  arraySum(stall -> if(stall.1 < kept_until, stall.2, 0.), stalls) as stalled_seconds
from
(
  select
    *,
    least(greatest(if(is_finished, span_died, coalesce(kept_at, span_begin)), span_begin), span_died) as kept_until
  from
  (
    select
      *,
      least(
        greatest(coalesce(span_failed, span_end), if(is_begun, span_begin, placed_time)), span_end
      ) as span_died
    from
    (
      select
        *,
        began_time is not null as is_begun,
        is_spanned and began_time is not null as is_worked,
        least(greatest(coalesce(began_time, span_end), placed_time), span_end) as span_begin
      from
      (
        select
          *,
          is_placed and ended_time is not null as is_spanned,
          greatest(assumeNotNull(ended_time), placed_time) as span_end
        from
        (
          select
            *,
            if(is_ended, end_time, if(is_ruled, ruled_time, null)) as ended_time,
            coalesce(first_step_at, ranks_started_at, if(is_ended, end_started_at, null)) as began_time,
            if(is_ended, end_failed_at, null) as span_failed,
            is_ended and end_reason in ('COMPLETED', 'EARLY_STOPPED') as is_finished
          from attempt_joined
        )
      )
    )
  )
);

-- One row per attempt: the whole receipt. The same as trackway_common.history.receipt computes from the facts.
create or replace view training_attempts as
with
  least(kept_seconds, stalled_seconds) as kept_stall,
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
  if(is_spanned, dateDiff('microsecond', placed_time, span_end) / 1e6, 0.) as wall_seconds,
  if(is_spanned, dateDiff('microsecond', placed_time, if(is_worked, span_begin, span_died)) / 1e6, 0.)
    as startup_seconds,
  if(is_worked, kept_seconds - kept_stall, 0.) as productive_seconds,
  if(is_worked, kept_stall, 0.) as stall_seconds,
  if(is_worked, dateDiff('microsecond', kept_until, span_died) / 1e6, 0.) as lost_seconds,
  if(is_spanned, dateDiff('microsecond', span_died, span_end) / 1e6, 0.) as idle_seconds,
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
from attempt_spans;
