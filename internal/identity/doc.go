// Package identity finds out where this process runs, so that people who read a
// lease or a log can find the replica: the task of ECS, the instance of Cloud Run,
// the pod of Kubernetes, else the host.
//
// # What it guarantees
//
// Detect returns within a second for each thing it asks, and always with a holder
// that is not empty: what cannot be found out is left out, and said in Problem. It
// asks only the platform's own metadata service, at the address the platform gave
// in the environment or that is the same on every instance, without proxies and
// without following redirects. Every value is cut to a printable line of bounded
// length, whatever a service answers.
//
// # What it does not guarantee
//
// That the holder is unique: two replicas outside of these platforms may have one
// host name. Nothing depends on it. Replicas tell each other apart by the random
// incarnation of their records, and the holder is for people alone.
package identity
