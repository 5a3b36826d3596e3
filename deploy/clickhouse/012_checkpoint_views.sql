-- Checkpoints with what later slots of the commit log said about them.
create or replace view checkpoint_slots_folded as
select
  run_id,
  commit_slot,
  countIf(fact = 'CheckpointSuperseded') > 0 as is_superseded,
  anyIf(text, fact = 'CheckpointSuperseded') as superseded_by,
  countIf(fact = 'CheckpointQuarantined') > 0 as is_quarantined,
  anyIf(text, fact = 'CheckpointQuarantined') as quarantined_why,
  countIf(fact = 'CheckpointTombstoned') > 0 as is_tombstoned,
  countIf(fact = 'CheckpointDeleted') > 0 as is_deleted,
  anyIf(amount, fact = 'CheckpointDeleted') as freed_bytes
from checkpoint_slots_state final
group by run_id, commit_slot;

-- Who holds a checkpoint: of each consumer the newer of hold and release counts.
create or replace view checkpoint_holds_folded as
select run_id, commit_slot, arraySort(groupArrayIf(consumer, newest = 'CheckpointHeld')) as holders
from
(
  select run_id, commit_slot, toString(consumer) as consumer, argMax(toString(fact), version) as newest
  from checkpoint_slots_state final
  where fact in ('CheckpointHeld', 'HoldReleased')
  group by run_id, commit_slot, consumer
)
group by run_id, commit_slot;

create or replace view checkpoints as
select
  commits.run_id as run_id,
  commits.checkpoint as checkpoint,
  multiIf(
    slots.is_deleted, 'DELETED',
    slots.is_quarantined, 'QUARANTINED',
    slots.is_superseded, 'SUPERSEDED',
    'COMMITTED') as phase,
  commits.step as step,
  commits.epoch as epoch,
  commits.nonce as nonce,
  captures.attempt as attempt,
  commits.slot as slot,
  commits.manifest_digest as manifest_digest,
  commits.parent as parent,
  commits.parent_run_id as parent_run_id,
  commits.parent_digest as parent_digest,
  commits.path as path,
  commits.size_bytes as size_bytes,
  commits.world_size as world_size,
  commits.samples_consumed as samples_consumed,
  commits.config_digest as config_digest,
  commits.dataset_digests as dataset_digests,
  commits.metrics as metrics,
  if(captures.attempt > 0, captures.started_at, null) as captured_at,
  captures.blocked_seconds as blocked_seconds,
  commits.committed_at as committed_at,
  holds.holders as holders,
  slots.superseded_by as superseded_by,
  slots.quarantined_why as quarantined_why,
  slots.is_tombstoned as is_tombstoned,
  slots.freed_bytes as freed_bytes,
  '' as abandoned_why
from checkpoint_commits_state as commits final
left join checkpoint_slots_folded as slots
  on slots.run_id = commits.run_id and slots.commit_slot = commits.slot
left join checkpoint_holds_folded as holds
  on holds.run_id = commits.run_id and holds.commit_slot = commits.slot
left join checkpoint_captures_state as captures final
  on captures.run_id = commits.run_id and captures.checkpoint = commits.checkpoint
union all
select
  captures.run_id,
  captures.checkpoint,
  if(abandons.attempt > 0, 'ABANDONED', 'WRITING') as phase,
  captures.step,
  captures.epoch,
  captures.nonce,
  captures.attempt,
  0 as slot,
  '' as manifest_digest,
  '' as parent,
  '' as parent_run_id,
  '' as parent_digest,
  '' as path,
  captures.size_bytes,
  0 as world_size,
  0 as samples_consumed,
  '' as config_digest,
  [] as dataset_digests,
  '[]' as metrics,
  captures.started_at as captured_at,
  captures.blocked_seconds,
  null as committed_at,
  [] as holders,
  '' as superseded_by,
  '' as quarantined_why,
  false as is_tombstoned,
  0 as freed_bytes,
  abandons.why as abandoned_why
from checkpoint_captures_state as captures final
left join checkpoint_abandons_state as abandons final
  on abandons.run_id = captures.run_id and abandons.checkpoint = captures.checkpoint
where (captures.run_id, captures.checkpoint) not in (select run_id, checkpoint from checkpoint_commits_state);
