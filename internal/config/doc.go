// Package config reads the configuration file of sf2loki-ha, which is sf2loki's
// file with a few more keys, lays the environment over it, and says everything
// that is wrong with the result at once.
//
// # What it guarantees
//
// [Load] returns either a [Config] that every other package may use without
// checking it again, or an [*Error] that lists every problem it could find:
// dotted key, what is wrong with the numbers, the fix, and the place (file,
// line and column, or the environment variable). One mistake hides no other whose
// values are known; a syntax error hides everything. The caller prints it and
// exits with 2, before any client exists. There is no third outcome: a typing
// error never selects a default silently, and no input makes Load panic.
//
// Precedence is environment over file over defaults. Names, defaults, scalar
// rules and durations are sf2loki's, so that its file can be read here as it is.
// Not the other way round: sf2loki refuses keys that only exist here, such as
// workload, and reads a file of its own.
//
// The sections salesforce, orgs, sources and sink, and service.telemetry, belong
// to sf2loki: they are neither read, checked nor interpolated here, and nothing
// in them can appear in an error, except a YAML syntax error's anchor name.
//
// Two configurations are impossible: a selected lease or store without its
// bucket, and a lease object that is the checkpoint object. An object or
// Kubernetes lease needs an explicit state.store, because the default (a file
// on this replica's own disk) is one that a takeover would not find.
//
// The relations between durations are those of [coordinator.Config.Validate];
// this package only translates field names into keys.
//
// # What it does not guarantee
//
// No file but the configuration itself is opened, no name is looked up and no
// store is asked: a bucket that does not exist, a missing service file or a
// denied request are found later, by the replica that stays standby. Two names
// for one object that only the store can relate (access point aliases, DNS
// aliases, bind mounts that do not exist yet) are not recognised as one.
//
// # Where it is stricter than sf2loki
//
// On purpose, because each of these would start a second leader or lose a value
// without a word:
//
//   - A lease section without coordinate.type is an error (sf2loki: noop, so
//     that every replica leads). Its files that have one beside an explicit noop
//     stay legal.
//   - A variable that would name a key if its sections were separated by two
//     underscores, such as SF2LOKI_COORDINATE_TYPE, is an error (sf2loki ignores
//     every top-level name it does not know). Other unknown top-level names are
//     ignored here as well: they may be anybody's, and those that Kubernetes
//     makes for Services look like that. SF2LOKI_HA_ is what the supervisor hands
//     to its command, and never configuration.
//   - A duplicate key is an error that names both lines (sf2loki: the last wins).
//   - Syntax errors and files that are not UTF-8 are configuration errors
//     (sf2loki: a traceback); a mapping that contains itself through an alias is
//     refused.
package config
