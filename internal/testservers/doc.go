// Package testservers starts real third-party stores for tests: versitygw, which
// speaks S3, fake-gcs-server, which speaks Google Cloud Storage, and Kubernetes'
// own API server on an etcd.
//
// # What it guarantees
//
// A server listens on a free port of 127.0.0.1, is ready and empty (a bucket
// exists, a namespace does not) when Start… returns, and is killed with its process
// group by the cleanup of the test, or by the kernel if the test process dies first
// (Linux). Data lives in the test's temporary directory or in memory.
//
// The binaries are built from source into .bin/ at the root of the module by
// "make tools"; SF2LOKI_HA_BIN_DIR names another directory. A missing binary
// fails the test: a conformance test that skips itself proves nothing.
//
// # What it does not guarantee
//
// That the servers behave like the services they imitate. fake-gcs-server knows no
// rate limit and no permissions and says "Not Found" for object and bucket alike;
// versitygw may show newer data beside an older ETag while an object is being
// overwritten, and has one user with every permission. kube-apiserver is the real
// one, but nothing runs beside it: no controller collects garbage or finishes the
// deletion of a namespace.
package testservers
