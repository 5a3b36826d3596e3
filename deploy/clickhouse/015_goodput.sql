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
