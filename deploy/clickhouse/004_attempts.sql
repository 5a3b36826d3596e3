-- State of the attempts topic.

create table if not exists attempt_marks_state (
  run_id            String,
  attempt           UInt32,
  fact              LowCardinality(String),
  version           UInt64,
  at                DateTime64(6, 'UTC'),
  checkpoint        String,
  checkpoint_step   Nullable(UInt64),
  checkpoint_digest String,
  cluster_id        LowCardinality(String),
  nodes             Array(String),
  ranks             String,
  first_step        UInt64,
  why               String
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt, fact)
  settings non_replicated_deduplication_window = 10000;

create table if not exists attempt_ends_state (
  run_id                String,
  attempt               UInt32,
  version               UInt64,
  reason                LowCardinality(String),
  domain                LowCardinality(String),
  confidence            Float64,
  cause                 String,
  fingerprint           String,
  classifier_version    LowCardinality(String),
  blamed_rank           Nullable(UInt32),
  blamed_node           LowCardinality(String),
  evidence              String,
  failed_at             Nullable(DateTime64(6, 'UTC')),
  rank_ends             String,
  accelerators          UInt64,
  gpu_seconds           Float64,
  started_at            Nullable(DateTime64(6, 'UTC')),
  ended_at              DateTime64(6, 'UTC'),
  first_step            UInt64,
  last_step             UInt64,
  resumed_from          String,
  resumed_from_step     Nullable(UInt64),
  resumed_from_digest   String,
  last_committed        String,
  last_committed_step   Nullable(UInt64),
  last_committed_digest String,
  last_metrics          String
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt)
  settings non_replicated_deduplication_window = 10000;

create table if not exists attempt_environments_state (
  run_id              String,
  attempt             UInt32,
  rank                UInt32,
  version             UInt64,
  python_version      LowCardinality(String),
  torch_version       LowCardinality(String),
  device              LowCardinality(String),
  host                LowCardinality(String),
  environment_digest  String,
  differs_from_pinned Bool,
  report_digest       String
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt, rank)
  settings non_replicated_deduplication_window = 10000;

create table if not exists checkpoint_captures_state (
  run_id          String,
  step            UInt64,
  epoch           UInt32,
  nonce           String,
  version         UInt64,
  attempt         UInt32,
  checkpoint      String,
  size_bytes      UInt64,
  blocked_seconds Float64,
  started_at      DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, epoch, step, nonce)
  settings non_replicated_deduplication_window = 10000;

create table if not exists checkpoint_abandons_state (
  run_id       String,
  step         UInt64,
  epoch        UInt32,
  nonce        String,
  version      UInt64,
  attempt      UInt32,
  checkpoint   String,
  why          String,
  abandoned_at DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, epoch, step, nonce)
  settings non_replicated_deduplication_window = 10000;
