// Package leasecmd is the verb "lease": what the lease says, and what people ask
// of the replicas through the request object (docs/requests.md).
//
// Every change is one conditional write on the version that was just read, tried
// again if somebody was faster, and changes its own part alone. Nothing here
// writes the lease. A request is a request: whether it was obeyed is seen in the
// lease, which the verbs watch for a while and report.
package leasecmd
