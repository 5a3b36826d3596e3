-- State of the runs topic: one row per key, the newest version counts (read with FINAL).

create table if not exists run_specs_state (
  run_id                 String,
  version                UInt64,
  submitted_at           DateTime64(6, 'UTC'),
  request_digest         String,
  actor                  LowCardinality(String),
  trace_id               String,
  project                LowCardinality(String),
  model_family           LowCardinality(String),
  owner                  LowCardinality(String),
  criticality            LowCardinality(String),
  experiment             String,
  hypothesis             String,
  labels                 String,
  trigger_kind           LowCardinality(String),
  trigger_ref            String,
  spec_digest            String,
  config_digest          String,
  config_json            String,
  seed                   UInt64,
  seed_drawn             Bool,
  deterministic          Bool,
  entrypoint_kind        LowCardinality(String),
  entrypoint             Array(String),
  dataset_names          Array(String),
  dataset_digests        Array(String),
  dataset_weights        Array(Float64),
  code_requested         String,
  code_digest            String,
  git_commit             String,
  dirty_diff_digest      String,
  runtime_kind           LowCardinality(String),
  environment_digest     String,
  python_version         LowCardinality(String),
  evaluation_pack        LowCardinality(String),
  evaluation_pack_digest String,
  compute_class          LowCardinality(String),
  accelerator_kind       LowCardinality(String),
  preemptible            Bool,
  price                  Float64,
  currency               LowCardinality(String),
  price_since            LowCardinality(String),
  world_size             UInt32,
  strategy               LowCardinality(String),
  precision              LowCardinality(String),
  keep_last              UInt32,
  in_flight              LowCardinality(String),
  max_attempts           UInt32
) engine = ReplacingMergeTree(version)
  order by (run_id)
  settings non_replicated_deduplication_window = 10000;

create table if not exists run_refusals_state (
  run_id       String,
  version      UInt64,
  refused_at   DateTime64(6, 'UTC'),
  message      String,
  violations   String,
  project      LowCardinality(String),
  model_family LowCardinality(String),
  owner        LowCardinality(String)
) engine = ReplacingMergeTree(version)
  order by (run_id)
  settings non_replicated_deduplication_window = 10000;

create table if not exists run_phases_state (
  run_id        String,
  version       UInt64,
  phase         LowCardinality(String),
  since         DateTime64(6, 'UTC'),
  reason        LowCardinality(String),
  message       String,
  evaluation_id String,
  result        String,
  result_digest String
) engine = ReplacingMergeTree(version)
  order by (run_id)
  settings non_replicated_deduplication_window = 10000;

create table if not exists run_cancels_state (
  run_id        String,
  version       UInt64,
  requested_at  DateTime64(6, 'UTC'),
  cancelled_by  String,
  cancel_reason String
) engine = ReplacingMergeTree(version)
  order by (run_id)
  settings non_replicated_deduplication_window = 10000;

create table if not exists attempt_queue_state (
  run_id     String,
  attempt    UInt32,
  version    UInt64,
  queued_at  DateTime64(6, 'UTC'),
  not_before DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt, version)
  settings non_replicated_deduplication_window = 10000;

create table if not exists attempt_placements_state (
  run_id        String,
  attempt       UInt32,
  version       UInt64,
  epoch         UInt32,
  pool          LowCardinality(String),
  agent_id      LowCardinality(String),
  placement     String,
  changes       String,
  placed_at     DateTime64(6, 'UTC'),
  queue_seconds Float64,
  accelerators  UInt64
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt)
  settings non_replicated_deduplication_window = 10000;

create table if not exists attempt_rulings_state (
  run_id    String,
  attempt   UInt32,
  version   UInt64,
  kind      LowCardinality(String),
  reason    LowCardinality(String),
  domain    LowCardinality(String),
  message   String,
  evidence  String,
  failed_at Nullable(DateTime64(6, 'UTC')),
  ruled_at  DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt)
  settings non_replicated_deduplication_window = 10000;

create table if not exists retry_decisions_state (
  run_id          String,
  attempt         UInt32,
  version         UInt64,
  reason          LowCardinality(String),
  move            LowCardinality(String),
  ledger          LowCardinality(String),
  spent           UInt32,
  budget          Int64,
  backoff_seconds Float64,
  not_before      DateTime64(6, 'UTC'),
  why             String,
  changes         String,
  progress        LowCardinality(String),
  last_committed  String,
  decided_at      DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt)
  settings non_replicated_deduplication_window = 10000;
