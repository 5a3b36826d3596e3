-- How far the projection is. Per topic and partition the newest range counts: PENDING (1) is replayed under the
-- same tokens at the next start, DONE (2) says that all of its rows are there.
create table if not exists projector_ledger (
  projector       LowCardinality(String),
  generation      UInt32,
  topic           LowCardinality(String),
  kafka_partition UInt32,
  first_offset    UInt64,
  last_offset     UInt64,
  state           UInt8,
  appended_at     DateTime64(6, 'UTC'),
  at              DateTime64(6, 'UTC') default now64(6),
  version         UInt64
) engine = ReplacingMergeTree(version)
  order by (projector, generation, topic, kafka_partition);

-- Acceptance state: of each stream the sequence of its last accepted fact, of each scope its owner's term.
-- What stood there before the range is kept beside it, because a PENDING range is judged again from before it.
create table if not exists stream_heads (
  projector       LowCardinality(String),
  generation      UInt32,
  topic           LowCardinality(String),
  kafka_partition UInt32,
  kind            LowCardinality(String),
  name            String,
  head            UInt64,
  head_before     UInt64,
  epoch           UInt32,
  epoch_before    UInt32,
  claim           UInt32,
  claim_before    UInt32,
  range_last      UInt64
) engine = ReplacingMergeTree(range_last)
  order by (projector, generation, topic, kafka_partition, kind, name)
  settings non_replicated_deduplication_window = 10000;

create table if not exists projector_lag_state (
  projector       LowCardinality(String),
  topic           LowCardinality(String),
  kafka_partition UInt32,
  position        UInt64,
  end_offset      UInt64,
  records_behind  UInt64,
  seconds_behind  Float64,
  observed_at     DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(observed_at)
  order by (projector, topic, kafka_partition);
