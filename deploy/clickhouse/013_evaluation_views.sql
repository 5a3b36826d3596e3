-- Evaluations, one row each; their aggregate values and their samples.
create or replace view evaluations as
select
  requests.run_id as run_id,
  requests.evaluation_id as evaluation_id,
  requests.project as project,
  requests.model_family as model_family,
  requests.pack as pack,
  requests.pack_digest as pack_digest,
  requests.checkpoint as checkpoint,
  requests.checkpoint_step as checkpoint_step,
  requests.checkpoint_digest as checkpoint_digest,
  requests.final as final,
  multiIf(ends.phase != '', toString(ends.phase), tries.tries > 0, 'RUNNING', 'REQUESTED') as phase,
  ends.verdict as verdict,
  ends.failure as failure,
  ends.message as message,
  tries.tries as tries,
  failures.failures as failures,
  ends.seconds as seconds,
  if(ends.tasks = '', '[]', ends.tasks) as tasks,
  if(ends.gates = '', '[]', ends.gates) as gates,
  if(ends.shards = '', '[]', ends.shards) as shards,
  ends.environment_digest as environment_digest,
  ends.evaluator_version as evaluator_version,
  requests.requested_at as requested_at,
  if(tries.tries > 0, tries.first_started_at, null) as started_at,
  if(ends.phase != '', ends.ended_at, null) as ended_at
from evaluation_requests_state as requests final
left join evaluation_ends_state as ends final
  on ends.run_id = requests.run_id and ends.evaluation_id = requests.evaluation_id
left join
(
  select run_id, evaluation_id, count() as tries, min(started_at) as first_started_at
  from evaluation_tries_state final
  group by run_id, evaluation_id
) as tries on tries.run_id = requests.run_id and tries.evaluation_id = requests.evaluation_id
left join
(
  select run_id, evaluation_id, count() as failures
  from evaluation_failures_state final
  group by run_id, evaluation_id
) as failures on failures.run_id = requests.run_id and failures.evaluation_id = requests.evaluation_id;

create or replace view evaluation_metrics as
select
  metrics.run_id as run_id,
  metrics.evaluation_id as evaluation_id,
  requests.project as project,
  requests.model_family as model_family,
  requests.pack as pack,
  requests.checkpoint as checkpoint,
  requests.checkpoint_step as checkpoint_step,
  metrics.* except (run_id, evaluation_id, version)
from evaluation_metrics_state as metrics final
left join evaluation_requests_state as requests final
  on requests.run_id = metrics.run_id and requests.evaluation_id = metrics.evaluation_id;

create or replace view evaluation_samples as
select * except (version) from evaluation_samples_state final;
