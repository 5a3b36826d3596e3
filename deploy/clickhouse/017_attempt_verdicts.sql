-- The newest verdict of a later classifier stands in the receipt; the first stays beside it.

create table if not exists attempt_verdicts_state (
  run_id             String,
  attempt            UInt32,
  version            UInt64,
  reason             LowCardinality(String),
  domain             LowCardinality(String),
  confidence         Float64,
  cause              String,
  fingerprint        String,
  classifier_version LowCardinality(String),
  blamed_rank        Nullable(UInt32),
  blamed_node        LowCardinality(String),
  evidence           String,
  failed_at          Nullable(DateTime64(6, 'UTC')),
  actor              LowCardinality(String),
  reclassified_at    DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt)
  settings non_replicated_deduplication_window = 10000;

-- All parts of an attempt side by side, before anything is computed. Not part of the contract.
create or replace view attempt_joined as
select
  base.run_id as run_id,
  base.attempt as attempt,
  specs.* except (
    run_id, version, submitted_at, request_digest, actor,
    config_digest, config_json, compute_class, accelerator_kind, preemptible, price, currency, price_since, world_size
  ),
  if(placed.is_shaped, placed.shaped_config_digest, specs.config_digest) as config_digest,
  if(placed.is_shaped, placed.shaped_config_json, specs.config_json) as config_json,
  if(placed.is_shaped, placed.shaped_compute_class, specs.compute_class) as compute_class,
  if(placed.is_shaped, placed.shaped_accelerator_kind, specs.accelerator_kind) as accelerator_kind,
  if(placed.is_shaped, placed.shaped_preemptible, specs.preemptible) as preemptible,
  if(placed.is_shaped, placed.shaped_price, specs.price) as price,
  if(placed.is_shaped, placed.shaped_currency, specs.currency) as currency,
  if(placed.is_shaped, placed.shaped_price_since, specs.price_since) as price_since,
  if(placed.is_shaped, placed.shaped_world_size, specs.world_size) as world_size,
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
  if(verdicts.attempt > 0, verdicts.reason, ends.reason) as end_reason,
  if(verdicts.attempt > 0, verdicts.domain, ends.domain) as end_domain,
  if(verdicts.attempt > 0, verdicts.confidence, ends.confidence) as end_confidence,
  if(verdicts.attempt > 0, verdicts.cause, ends.cause) as end_cause,
  if(verdicts.attempt > 0, verdicts.fingerprint, ends.fingerprint) as end_fingerprint,
  if(verdicts.attempt > 0, verdicts.classifier_version, ends.classifier_version) as end_classifier,
  verdicts.attempt > 0 as is_judged_again,
  ends.reason as first_reason,
  ends.classifier_version as first_classifier,
  verdicts.reclassified_at as judged_again_at,
  if(verdicts.attempt > 0, verdicts.blamed_rank, ends.blamed_rank) as end_blamed_rank,
  if(verdicts.attempt > 0, verdicts.blamed_node, ends.blamed_node) as end_blamed_node,
  if(verdicts.attempt > 0, verdicts.evidence, ends.evidence) as end_evidence,
  if(verdicts.attempt > 0, verdicts.failed_at, ends.failed_at) as end_failed_at,
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
left join attempt_verdicts_state as verdicts final
  on verdicts.run_id = base.run_id and verdicts.attempt = base.attempt
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
  if(is_ended, toString(first_reason), '') as first_termination_reason,
  if(is_ended, toString(first_classifier), '') as first_classifier_version,
  if(is_judged_again, judged_again_at, null) as reclassified_at,
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
