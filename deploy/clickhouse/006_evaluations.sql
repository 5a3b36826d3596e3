-- State of the evaluations topic.

create table if not exists evaluation_requests_state (
  run_id            String,
  evaluation_id     String,
  version           UInt64,
  project           LowCardinality(String),
  model_family      LowCardinality(String),
  pack              LowCardinality(String),
  pack_digest       String,
  checkpoint        String,
  checkpoint_step   UInt64,
  checkpoint_epoch  UInt32,
  checkpoint_digest String,
  final             Bool,
  requested_at      DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, evaluation_id)
  settings non_replicated_deduplication_window = 10000;

create table if not exists evaluation_tries_state (
  run_id             String,
  evaluation_id      String,
  evaluation_attempt UInt32,
  version            UInt64,
  host               LowCardinality(String),
  pid                UInt32,
  batch_size         UInt32,
  started_at         DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, evaluation_id, evaluation_attempt)
  settings non_replicated_deduplication_window = 10000;

create table if not exists evaluation_failures_state (
  run_id             String,
  evaluation_id      String,
  evaluation_attempt UInt32,
  version            UInt64,
  failure            LowCardinality(String),
  message            String,
  evidence           String,
  move               LowCardinality(String),
  spent              UInt32,
  budget             Int64,
  failed_at          DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, evaluation_id, evaluation_attempt)
  settings non_replicated_deduplication_window = 10000;

create table if not exists evaluation_ends_state (
  run_id             String,
  evaluation_id      String,
  version            UInt64,
  phase              LowCardinality(String),
  verdict            LowCardinality(String),
  failure            LowCardinality(String),
  message            String,
  tasks              String,
  gates              String,
  shards             String,
  environment_digest String,
  evaluator_version  LowCardinality(String),
  seconds            Float64,
  ended_at           DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, evaluation_id)
  settings non_replicated_deduplication_window = 10000;

create table if not exists evaluation_metrics_state (
  run_id           String,
  evaluation_id    String,
  task             LowCardinality(String),
  metric           LowCardinality(String),
  slice            LowCardinality(String),
  version          UInt64,
  task_version     LowCardinality(String),
  task_digest      String,
  decoding_digest  String,
  dataset_digest   String,
  split            LowCardinality(String),
  value            Float64,
  stderr           Nullable(Float64),
  stderr_method    LowCardinality(String),
  higher_is_better Bool,
  primary          Bool,
  samples          UInt64
) engine = ReplacingMergeTree(version)
  order by (run_id, evaluation_id, task, metric, slice)
  settings non_replicated_deduplication_window = 10000;

-- Rows of the evaluations' Parquet shards, one per sample; `kind` is samples or failures.
create table if not exists evaluation_samples_state (
  run_id        String,
  evaluation_id String,
  task          LowCardinality(String),
  kind          LowCardinality(String),
  sample_id     String,
  version       UInt64,
  metrics       Map(LowCardinality(String), Float64),
  weight        Float64,
  slices        Map(LowCardinality(String), String),
  failed        Bool,
  error         String codec(ZSTD(3)),
  prompt        String codec(ZSTD(3)),
  output        String codec(ZSTD(3)),
  target        String codec(ZSTD(3))
) engine = ReplacingMergeTree(version)
  order by (run_id, evaluation_id, task, kind, sample_id)
  settings non_replicated_deduplication_window = 10000;
