-- What an attempt ran with where a retry or its placement changed the run's spec: receipts show the attempt's own.

alter table attempt_placements_state
  add column if not exists is_shaped Bool,
  add column if not exists shaped_config_digest String,
  add column if not exists shaped_config_json String,
  add column if not exists shaped_compute_class LowCardinality(String),
  add column if not exists shaped_accelerator_kind LowCardinality(String),
  add column if not exists shaped_preemptible Bool,
  add column if not exists shaped_price Float64,
  add column if not exists shaped_currency LowCardinality(String),
  add column if not exists shaped_price_since LowCardinality(String),
  add column if not exists shaped_world_size UInt32;

-- As before, but for the columns of the shape.
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
