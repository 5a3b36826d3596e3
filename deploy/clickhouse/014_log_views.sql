-- The log itself, and measurements.
create or replace view events as select * from events_state final;

create or replace view rejected_events as select * from rejected_events_state final;

create or replace view ownership_claims as select * from ownership_claims_state final;

create or replace view dead_letters as select * except (version) from dead_letters_state final;

create or replace view metrics as select * from metrics_state final;

create or replace view logs as select * from logs_state final;

create or replace view resource_samples as select * from resource_samples_state final;

create or replace view rank_heartbeats as select * except (version) from rank_heartbeats_state final;

create or replace view signals as select * except (version) from signals_state final;

create or replace view agents as select * except (version) from agents_state final;

create or replace view projector_lag as select * from projector_lag_state final;
