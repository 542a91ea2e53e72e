package answers

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// KubeLeases is the path of the Leases of the namespace.
const KubeLeases = "/apis/coordination.k8s.io/v1/namespaces/" + Namespace + "/leases"

// The annotation that keeps the record, and the uid of the Lease.
const (
	kubeAnnotation = "sf2loki.io/lease-record"
	KubeUID        = "uid-1"
)

// The requests of a Replace: a read, an update, and after a 409 to it another
// read.
const (
	ReadFirst  = "read of a replace"
	Update     = "update of a replace"
	ReadAgain  = "read after a 409"
	kubeBefore = "10" // the resourceVersion of what is there
)

const asJSON = "Content-Type: application/json"

var (
	kubeHeld = KubeObject(200, KubeLease(Record("w1"), kubeBefore))
	kube409  = KubeStatus(409, "Conflict", "leases/"+LeaseName)
	// A read that follows goes to a fresh connection: net/http sends a GET again
	// by itself if the connection that it kept turns out to be dead.
	kube409Close = KubeStatus(409, "Conflict", "leases/"+LeaseName, "Connection: close")
)

var k8sRequests = []Request{
	{Service: K8s, Name: Load, Op: Load, Sends: "load", class: byOp(Load)},
	{Service: K8s, Name: Create, Op: Create, Sends: "create if absent", class: byOp(Create)},
	{Service: K8s, Name: ReadFirst, Op: Replace, Sends: "load", class: byOp(Replace)},
	{Service: K8s, Name: Update, Op: Replace, Before: []Exchange{{"load", kubeHeld}}, Sends: "replace if " + kubeBefore, class: byOp(Replace)},
	{Service: K8s, Name: ReadAgain, Op: Replace, Before: []Exchange{{"load", kubeHeld}, {"replace if " + kubeBefore, kube409Close}}, Sends: "load",
		// A refusal to read says nothing about the update before it.
		class: func(m Meaning) cas.Class {
			if m.Replace == "" || m.Replace == cas.Conflict {
				return m.Replace
			}
			return cas.Ambiguous
		}},
}

// KubeLease is the Lease that holds a record, as an API server shows it.
func KubeLease(r coordinator.Record, resourceVersion string) map[string]any {
	const micro = "2006-01-02T15:04:05.000000Z"
	holder := r.Holder
	if r.State == coordinator.Released {
		holder = ""
	}
	return map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{
			"name": LeaseName, "namespace": Namespace, "uid": KubeUID, "resourceVersion": resourceVersion,
			"annotations": map[string]any{kubeAnnotation: Text(r)},
		},
		"spec": map[string]any{
			"holderIdentity": holder, "leaseDurationSeconds": 3, "leaseTransitions": r.Epoch,
			"acquireTime": r.AcquiredAt.UTC().Format(micro), "renewTime": r.RenewedAt.UTC().Format(micro),
		},
	}
}

// KubeObject answers with an object.
func KubeObject(code int, o map[string]any) wiretest.Answer {
	b, err := json.Marshal(o)
	if err != nil {
		panic("answers: " + err.Error()) // such maps always encode
	}
	return wiretest.Respond(code, string(b), asJSON)
}

// KubeStatus answers with an error of Kubernetes. about is "resource/name".
func KubeStatus(code int, reason, about string, header ...string) wiretest.Answer {
	kind, name, _ := strings.Cut(about, "/")
	return kubeStatus(code, reason, map[string]any{"kind": kind, "name": name}, header...)
}

func kubeStatus(code int, reason string, details map[string]any, header ...string) wiretest.Answer {
	b, _ := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"message": "the server says " + reason, "reason": reason, "code": code, "details": details,
	})
	return wiretest.Respond(code, string(b), append(header, asJSON)...)
}

// kubePart is a Lease without something.
func kubePart(metadata string) wiretest.Answer {
	return wiretest.Respond(200, `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{`+metadata+`}}`, asJSON)
}

func k8sRows() map[string]row {
	each := func(a ...wiretest.Answer) row { return all(K8s, says(a...)) }
	lease := func(code int, writeID, rv string) wiretest.Answer {
		return KubeObject(code, KubeLease(Record(writeID), rv))
	}
	gets := []string{Load, ReadFirst, ReadAgain}
	created, updated := lease(201, "w2", "1"), lease(200, "w2", "11")
	theirs := KubeLease(stranger(), "11")
	about := "leases/" + LeaseName
	retry := "Retry-After: 1"
	labelled := func(rv string) wiretest.Answer {
		o := KubeLease(Record("w1"), rv)
		o["metadata"].(map[string]any)["labels"] = map[string]any{"seen": rv}
		return KubeObject(200, o)
	}
	altered := KubeLease(Record("w2"), "11") // a webhook changed what was written
	altered["spec"].(map[string]any)["holderIdentity"] = "webhook"
	cut := func(n int) row { return each(kubeHeld.Cut(n)) }
	terminating := kubeStatus(403, "Forbidden", map[string]any{"kind": "leases", "name": LeaseName, "causes": []any{map[string]any{"reason": "NamespaceTerminating"}}})
	return map[string]row{
		Success: each(kubeHeld, kubeHeld.Chunked()).but(says(created, created.Chunked()), Create).but(says(updated, updated.Chunked()), Update).
			but(says(kubeHeld).then("replace if "+kubeBefore, updated), ReadFirst).
			but(says(labelled("11")).then("replace if 11", lease(200, "w2", "12")), ReadAgain),
		NoVersion: all(K8s, says(kubePart(`"name":"leader","uid":"u"`), kubePart(`"name":"leader","resourceVersion":"1"`)).hint("API server")),

		"a success with nothing in it": all(K8s, says(Bare(200)).hint("API server")),
		"a success of something else": all(K8s, says(loginPage, wiretest.Respond(200, "garbage", asJSON), wiretest.Respond(200, `{"kind":"Pod"}`, asJSON), kubePart(`"name":"x","uid":"u","resourceVersion":"1"`)).hint("API server")).
			but(says(lease(201, "w0", "1")).hint("webhook"), Create).but(says(lease(200, "w0", "11"), KubeObject(200, altered)).hint("webhook"), Update),
		"accepted, not done":             each(wiretest.Respond(202, "{}", asJSON)),
		NoKey:                            each(KubeStatus(404, "NotFound", about)),
		NoBucket:                         all(K8s, says(KubeStatus(404, "NotFound", "namespaces/"+Namespace)).hint("create namespace")).but(says(KubeStatus(404, "NotFound", "namespaces/"+Namespace), terminating).hint("namespace"), Create, Update),
		"not found, without saying what": all(K8s, never("Kubernetes names the resource; a 404 without one is not Kubernetes'")),
		"a 404 that is not the store's":  all(K8s, says(HTML404, text404, Bare(404), wiretest.Respond(404, `{"error":"no route"}`, asJSON), KubeStatus(404, "NotFound", "leases/other")).hint("API server")),
		"half of a 404":                  each(KubeStatus(404, "NotFound", about).Cut(20)),

		ConditionFalse: all(K8s, never("a read has no condition, and Kubernetes has no 412 for one")).
			but(says(KubeStatus(409, "AlreadyExists", about)), Create).
			but(says(KubeObject(200, theirs), lease(200, "w0", "11")), ReadFirst, ReadAgain).
			but(says(kube409).then("load", KubeObject(200, theirs)), Update),
		"the condition is false, with status 200": all(K8s, never("seen of S3 alone")),
		"the object exists, with status 304":      all(K8s, never("no request of ours asks whether something was modified")),
		"half of a conflict": all(K8s, never("a read has no condition")).
			but(says(KubeStatus(409, "AlreadyExists", about).Cut(20)).is(cas.Ambiguous, "the client library drops the status together with the body"), Create).
			but(says(kube409.Cut(20)).is(cas.Ambiguous, "the client library drops the status together with the body"), Update),
		Elsewhere: all(K8s, never("whoever reads sees the newest state")).but(never("nothing is there that could change"), Create).
			but(says(kube409).then("load", labelled("11")).then("replace if 11", kube409).then("load", labelled("12")).then("replace if 12", lease(200, "w2", "13")), Update),

		GaveUp: each(KubeStatus(409, "Conflict", about)).but(never("a read conflicts with nothing"), gets...).
			but(says(kube409, Bare(409)).is("", "a 409 to an update is a question that is asked at once").then("load", kubeHeld).then("replace if "+kubeBefore, updated), Update),
		TooMany: each(KubeStatus(429, "TooManyRequests", "", retry), Bare(429)),

		InternalError:                           each(KubeStatus(500, "InternalError", "", retry), Bare(500)),
		"an internal error with status 200":     all(K8s, never("seen of S3 alone")),
		"a bad gateway":                         each(badGateway, wiretest.Respond(502, "<html>", "Content-Type: text/html", retry)),
		Unavailable:                             each(KubeStatus(503, "ServiceUnavailable", "", retry), Bare(503)),
		"a gateway's timeout":                   each(KubeStatus(504, "Timeout", "", retry), proxy504),
		"the request came too slowly":           each(proxy408),
		ResetBefore:                             each(wiretest.ResetAtOnce()),
		ResetAfter:                              each(wiretest.ResetAfterRequest()),
		"half of the headers":                   each(kubeHeld.CutHead(30)),
		"half of the body":                      cut(100),
		"half of the body, then a reset":        each(kubeHeld.Cut(100).ByReset()),
		"a chunked body without its end":        each(kubeHeld.Chunked().Cut(100)),
		"a body that does not fit its checksum": all(K8s, never("the API has no checksums; TLS has")),
		"garbage instead of a document":         all(K8s, says(wiretest.Respond(400, "bad", "Content-Type: text/plain"), wiretest.Respond(200, "{}", "Content-Type: ;;"))),
		"a refusal that nobody knows":           each(Bare(418), wiretest.Respond(405, "no", "Content-Type: text/plain")),
		NoAnswer:                                each(wiretest.Hang()),
		Late:                                    each(kubeHeld.After(late)).but(says(created.After(late)), Create).but(says(updated.After(late)), Update),

		"an object that is no record": all(K8s, never("a Lease always has a spec; the answer to a write shows the write")).
			but(says(KubeObject(200, bareLease(nil)), KubeObject(200, bareLease("{"))).is("", "the spec counts, as a foreign lease that has to go stale"), Load).
			but(says(KubeObject(200, bareLease(nil)), KubeObject(200, bareLease("{"))).is(cas.Conflict, "it is not the state that is to be replaced"), ReadFirst, ReadAgain),
		"an epoch out of range": all(K8s, never("a Lease always has a spec; the answer to a write shows the write")).
			but(says(KubeObject(200, bareLease(`{"epoch":9007199254740992}`))).is("", "the spec counts, as a foreign lease that has to go stale"), Load).
			but(says(KubeObject(200, bareLease(`{"epoch":9007199254740992}`))).is(cas.Conflict, "it is not the state that is to be replaced"), ReadFirst, ReadAgain),
		"an object too large": all(K8s, never("Kubernetes keeps no object of more than about 1.5 MiB")),

		"not authenticated": all(K8s, says(KubeStatus(401, "Unauthorized", "")).hint("credentials")),
		NotAllowed:          all(K8s, says(KubeStatus(403, "Forbidden", about)).hint("in namespace "+Namespace)),
		"credentials that have expired or are wrong": all(K8s, says(KubeStatus(401, "Unauthorized", ""), Bare(401)).hint("credentials")),
		"a key for encryption that refuses":          all(K8s, never("encryption at rest is the API server's own affair; it answers 500")),
		"a policy that forbids this write":           all(K8s, says(KubeStatus(400, "BadRequest", ""), KubeStatus(422, "Invalid", about)).hint("refuses")).but(never("admission policies judge writes alone"), gets...),

		"a redirect":                       all(K8s, says(wiretest.Respond(301, "", "Location: http://127.0.0.1:1/elsewhere"), wiretest.Respond(307, "", "Location: http://127.0.0.1:1/elsewhere"), wiretest.Respond(302, "", "Location: https://login.example/")).hint("redirect")),
		"another region, said with a 400":  all(K8s, never("a cluster has no region")),
		"an impossible name":               all(K8s, never("an impossible name is refused when the store is opened")),
		"not implemented":                  all(K8s, says(Bare(501)).is(cas.Ambiguous, "every API server has conditional updates: a proxy says this")).but(says(Bare(501)), ReadAgain),
		"not implemented, said with a 400": all(K8s, never("the words of S3's protocol alone")),
	}
}

// stranger is the record of another replica that took the lease.
func stranger() coordinator.Record {
	r := Record("w9")
	r.Holder, r.Incarnation, r.Term, r.Epoch = "pod-2", "inc-2", "term-2", 8
	return r
}

// bareLease is a Lease of other software, with that annotation, if any.
func bareLease(annotation any) map[string]any {
	o := KubeLease(stranger(), "11")
	m := o["metadata"].(map[string]any)
	delete(m, "annotations")
	if annotation != nil {
		m["annotations"] = map[string]any{kubeAnnotation: annotation}
	}
	return o
}

// understandK8s reads a request to the API server.
func understandK8s(r wiretest.Request) (Sent, error) {
	path, one := r.Target, KubeLeases+"/"+LeaseName
	var o struct {
		Metadata struct {
			Name, Namespace, UID, ResourceVersion string
			Annotations                           map[string]string
		}
	}
	if len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, &o); err != nil {
			return Sent{}, err
		}
	}
	m, doc := o.Metadata, []byte(o.Metadata.Annotations[kubeAnnotation])
	switch {
	case r.Method == "GET" && path == one && len(r.Body) == 0:
		return Sent{Op: Load}, nil
	case r.Method == "POST" && path == KubeLeases && m.Name == LeaseName && m.ResourceVersion == "":
		return Sent{Op: Create, Condition: Absent, Doc: doc}, nil
	// Without its uid an update that meets no Lease would create one.
	case r.Method == "PUT" && path == one && m.Name == LeaseName && m.ResourceVersion != "" && m.UID == KubeUID:
		return Sent{Op: Replace, Condition: m.ResourceVersion, Doc: doc}, nil
	}
	return Sent{}, fmt.Errorf("%s %s of %+v", r.Method, path, m)
}
