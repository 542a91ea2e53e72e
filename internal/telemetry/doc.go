// Package telemetry is what a replica tells machines: Prometheus metrics and
// structured logs.
//
// # Metrics
//
// State is read at every scrape, through one function that returns a [State];
// nothing is stored at transitions. So every series of the list below is there
// at every scrape of every replica, and sf2loki_leader is 1 only while the term's
// deadline, as computed at the scrape, has not passed. The sum over the pair is
// 1, and 0 during a takeover.
//
//	sf2loki_leader                                 gauge, 1 or 0
//	sf2loki_build_info{version}                    gauge, 1; the version is a label of this series only
//	sf2loki_ha_epoch                               gauge, the highest epoch seen
//	sf2loki_ha_lease_observed_age_seconds          gauge, since the lease's version last changed for this replica
//	sf2loki_ha_lease_deadline_remaining_seconds    gauge, 0 unless leading
//	sf2loki_ha_work_running                        gauge, 1 or 0
//	sf2loki_ha_store_requests_total{op,class}      counter; class is "ok" or one of package cas
//	sf2loki_ha_store_request_seconds{op}           histogram
//	sf2loki_ha_ambiguous_writes_total              counter, writes without a definite answer
//	sf2loki_ha_settled_total                       counter, such writes that a read showed to have landed
//	sf2loki_ha_store_probe_result{result}          gauge, 1 for the last result: ok, unknown or unsupported
//	sf2loki_ha_store_probe_timestamp_seconds       gauge, end of the last store probe, wall clock
//	sf2loki_ha_work_starts_total                   counter
//	sf2loki_ha_transitions_total{event}            counter, a series from the first event of its kind on
//	sf2loki_ha_work_exits_total{outcome}           counter, likewise
//
// Beside them the usual go_* and process_* series. There is no identity label:
// the scraper knows whom it scrapes, and a label with something random in it
// would be a new series at every restart. The registry is private; nothing is
// registered in a global one.
//
// # Logs
//
// [NewLogger] writes one object a line, as sf2loki does: keys timestamp (UTC),
// level, event, then the fields; levels debug, info, warning, error, critical.
//
// # Limits
//
// Counters start at zero with the process. A replica that is gone has no series:
// alerts have to count replicas, not only leaders.
package telemetry
