-- State of the checkpoints topic.

create table if not exists checkpoint_commits_state (
  run_id           String,
  slot             UInt64,
  version          UInt64,
  checkpoint       String,
  step             UInt64,
  epoch            UInt32,
  nonce            String,
  manifest_digest  String,
  parent           String,
  parent_run_id    String,
  parent_digest    String,
  path             String,
  size_bytes       UInt64,
  world_size       UInt32,
  samples_consumed UInt64,
  config_digest    String,
  dataset_digests  Array(String),
  metrics          String,
  committed_at     DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, slot)
  settings non_replicated_deduplication_window = 10000;

create table if not exists checkpoint_slots_state (
  run_id      String,
  commit_slot UInt64,
  fact        LowCardinality(String),
  consumer    LowCardinality(String),
  version     UInt64,
  text        String,
  amount      UInt64,
  at          DateTime64(6, 'UTC')
) engine = ReplacingMergeTree(version)
  order by (run_id, commit_slot, fact, consumer)
  settings non_replicated_deduplication_window = 10000;
