-- Every accepted fact whole, what readers refused, who claimed what, and what nobody could read.

create table if not exists events_state (
  run_id          String,
  topic           LowCardinality(String),
  kafka_partition UInt32,
  kafka_offset    UInt64,
  event_index     UInt32,
  stream          String,
  sequence        UInt64,
  fact            LowCardinality(String),
  commit_id       String,
  epoch           UInt32,
  claim           UInt32,
  writer_id       LowCardinality(String),
  command_id      String,
  causation_id    String,
  correlation_id  String,
  tenant          LowCardinality(String),
  actor           LowCardinality(String),
  trace_id        String,
  traceparent     String,
  occurred_at     DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1)),
  appended_at     DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1)),
  payload         String codec(ZSTD(3)),
  fields          String codec(ZSTD(3)),
  projected_at    DateTime64(6, 'UTC') default now64(6) codec(Delta(8), ZSTD(1)),
  index ix_trace trace_id type bloom_filter(0.001) granularity 1,
  index ix_command command_id type bloom_filter(0.001) granularity 1
) engine = ReplacingMergeTree
  order by (run_id, topic, kafka_partition, kafka_offset, event_index)
  settings non_replicated_deduplication_window = 10000;

create table if not exists rejected_events_state (
  topic           LowCardinality(String),
  kafka_partition UInt32,
  kafka_offset    UInt64,
  event_index     UInt32,
  run_id          String,
  stream          String,
  sequence        UInt64,
  fact            LowCardinality(String),
  reason          LowCardinality(String),
  commit_id       String,
  epoch           UInt32,
  claim           UInt32,
  writer_id       LowCardinality(String),
  command_id      String,
  actor           LowCardinality(String),
  occurred_at     DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1)),
  appended_at     DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1)),
  fields          String codec(ZSTD(3))
) engine = ReplacingMergeTree
  order by (topic, kafka_partition, kafka_offset, event_index)
  settings non_replicated_deduplication_window = 10000;

create table if not exists ownership_claims_state (
  topic           LowCardinality(String),
  kafka_partition UInt32,
  kafka_offset    UInt64,
  scope           String,
  epoch           UInt32,
  claim           UInt32,
  writer_id       LowCardinality(String),
  endpoint        String,
  occurred_at     DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1)),
  appended_at     DateTime64(6, 'UTC') codec(Delta(8), ZSTD(1))
) engine = ReplacingMergeTree
  order by (topic, kafka_partition, kafka_offset)
  settings non_replicated_deduplication_window = 10000;

create table if not exists dead_letters_state (
  original_topic     String,
  original_partition UInt64,
  original_offset    UInt64,
  version            UInt64,
  reader             LowCardinality(String),
  why                String,
  key                String,
  payload            String codec(ZSTD(3)),
  buried_at          DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (original_topic, original_partition, original_offset)
  settings non_replicated_deduplication_window = 10000;
