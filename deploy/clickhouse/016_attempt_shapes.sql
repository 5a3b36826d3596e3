-- What an attempt ran with where a retry or its placement changed the run's spec: receipts show the attempt's own.

alter table attempt_placements_state
  add column if not exists is_shaped Bool,
  add column if not exists shaped_config_digest String,
  add column if not exists shaped_config_json String,
  add column if not exists shaped_compute_class LowCardinality(String),
  add column if not exists shaped_accelerator_kind LowCardinality(String),
  add column if not exists shaped_preemptible Bool,
  add column if not exists shaped_price Float64,
  add column if not exists shaped_currency LowCardinality(String),
  add column if not exists shaped_price_since LowCardinality(String),
  add column if not exists shaped_world_size UInt32;
