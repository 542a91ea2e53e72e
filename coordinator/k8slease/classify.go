package k8slease

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sf2loki/sf2loki-ha/cas"
)

const (
	hintStrange   = "this is not the answer of a Kubernetes API server: does the kubeconfig point at one, is a proxy in between?"
	hintAltered   = "a mutating admission webhook changes Leases: exempt this one from it"
	hintIdentity  = "the API server does not accept the credentials: check the token of the ServiceAccount or the user of the kubeconfig"
	hintInvalid   = "the API server refuses this object: check namespace and name of the Lease, and admission policies"
	hintRedirects = "the server redirects, which is not followed: put the address of the API server itself into the kubeconfig"
)

// verbs are what each operation needs from RBAC.
var verbs = map[string]string{"read": "get", "create": "create", "replace": "get and update"}

// failure makes a cas.Error of an answer that is not success.
func (s *Store) failure(ctx context.Context, op string, a answer) *cas.Error {
	e := &cas.Error{Class: cas.Ambiguous, Op: op, Object: s.Describe(), Status: a.code}
	switch {
	case a.code == 0 || a.err == nil:
		// No answer: a timeout, a reset, a cut body. A write may have landed.
		if err := ctx.Err(); err != nil {
			e.Err = &cause{text: "no answer: " + err.Error(), err: errors.Join(err, a.err)}
		} else if a.err != nil {
			e.Err = because(a.err)
		}
		return e
	case a.status != nil:
		e.Code = string(a.status.Reason)
		e.Err = &cause{text: a.status.Message, err: a.err}
	default:
		e.Err = because(a.err)
	}
	e.Class, e.Hint = s.classify(op, a)
	return e
}

// classify is the Kubernetes column of docs/errors.md. What is not understood is
// Ambiguous: it must neither let a standby claim nor let a leader believe that
// it lost or kept something.
func (s *Store) classify(op string, a answer) (cas.Class, string) {
	switch a.code {
	case http.StatusUnauthorized:
		return cas.Denied, hintIdentity
	case http.StatusForbidden:
		if a.status != nil && a.status.Details != nil {
			for _, c := range a.status.Details.Causes {
				if c.Type == "NamespaceTerminating" {
					return cas.NoBucket, fmt.Sprintf("namespace %s is being deleted", s.namespace)
				}
			}
		}
		return cas.Denied, fmt.Sprintf("allow %s on leases.coordination.k8s.io %s in namespace %s (docs/k8s-lease.md has the whole Role)", verbs[op], s.name, s.namespace)
	case http.StatusNotFound:
		// Absence can be claimed and, to a holder, is a loss: only Kubernetes' own
		// word about this very lease counts.
		switch {
		case a.says(metav1.StatusReasonNotFound) && a.about("namespaces"):
			return cas.NoBucket, fmt.Sprintf("create namespace %s, or correct the namespace in the configuration", s.namespace)
		case a.says(metav1.StatusReasonNotFound) && a.about("leases") && a.status.Details.Name == s.name && op != "create":
			// Of an update as well: the lease vanished after it was read.
			if op == "replace" {
				return cas.Conflict, "the lease was deleted"
			}
			return cas.NotFound, ""
		}
		return cas.Ambiguous, hintStrange
	case http.StatusConflict:
		if op == "create" && a.says(metav1.StatusReasonAlreadyExists) {
			return cas.Conflict, ""
		}
		return cas.Contended, "" // an update's never gets here: it is asked again
	case http.StatusTooManyRequests:
		return cas.Contended, ""
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge, http.StatusMethodNotAllowed:
		if a.status != nil {
			return cas.Denied, hintInvalid // definite: nothing was applied
		}
	}
	if a.code >= 300 && a.code < 400 {
		return cas.NoBucket, hintRedirects
	}
	return cas.Ambiguous, ""
}
