-- Measurements, signals and agents' heartbeats. A rank's record numbers are keys: a batch sent twice counts once.

create table if not exists metrics_state (
  run_id  String,
  name    LowCardinality(String),
  attempt UInt32,
  rank    UInt32,
  step    UInt64 codec(DoubleDelta, ZSTD(1)),
  record  UInt64 codec(DoubleDelta, ZSTD(1)),
  epoch   UInt32,
  at      DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1)),
  value   Float64 codec(Gorilla, ZSTD(1))
) engine = ReplacingMergeTree
  order by (run_id, name, attempt, rank, step, epoch, record)
  settings non_replicated_deduplication_window = 10000;

create table if not exists logs_state (
  run_id  String,
  attempt UInt32,
  rank    UInt32,
  record  UInt64 codec(DoubleDelta, ZSTD(1)),
  epoch   UInt32,
  at      DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1)),
  stream  LowCardinality(String),
  step    UInt64 codec(DoubleDelta, ZSTD(1)),
  text    String codec(ZSTD(3))
) engine = ReplacingMergeTree
  order by (run_id, attempt, rank, epoch, record)
  settings non_replicated_deduplication_window = 10000;

create table if not exists resource_samples_state (
  run_id              String,
  attempt             UInt32,
  rank                UInt32,
  record              UInt64 codec(DoubleDelta, ZSTD(1)),
  epoch               UInt32,
  at                  DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1)),
  memory_bytes        UInt64,
  cpu_percent         Float64,
  device_utilisation  Nullable(Float64),
  device_memory_bytes Nullable(UInt64)
) engine = ReplacingMergeTree
  order by (run_id, attempt, rank, epoch, record)
  settings non_replicated_deduplication_window = 10000;

create table if not exists rank_heartbeats_state (
  run_id          String,
  attempt         UInt32,
  rank            UInt32,
  version         UInt64,
  at              DateTime64(6, 'UTC'),
  last_step       UInt64,
  dropped_metrics UInt64,
  dropped_logs    UInt64
) engine = ReplacingMergeTree(version)
  order by (run_id, attempt, rank)
  settings non_replicated_deduplication_window = 10000;

create table if not exists signals_state (
  signal_id         String,
  version           UInt64,
  kind              LowCardinality(String),
  run_id            String,
  attempt           UInt32,
  rank              Nullable(UInt32),
  quiet_seconds     Float64,
  threshold_seconds Float64,
  message           String,
  observed_at       DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (signal_id)
  settings non_replicated_deduplication_window = 10000;

create table if not exists agents_state (
  agent_id           LowCardinality(String),
  version            UInt64,
  endpoint           String,
  pool               LowCardinality(String),
  cluster_id         LowCardinality(String),
  cpus               Float64,
  accelerators       UInt64,
  memory_bytes       UInt64,
  environment_digest String,
  python_version     LowCardinality(String),
  attempts           Array(String),
  last_seen_at       DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (agent_id)
  settings non_replicated_deduplication_window = 10000;
