// Package cluster runs replicas as real processes: the shipped binary, the
// canary as work, and whatever store the caller started.
//
// It guarantees that every process it started is gone when Close returns, also
// after a test has killed or frozen some of them. It judges nothing by itself;
// it keeps what the canaries said they did, with their own time stamps, so that
// a caller can compute overlap and gaps from acts and not from beliefs.
package cluster
