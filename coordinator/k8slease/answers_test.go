package k8slease_test

import (
	"testing"

	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/coordinator/k8slease"
	table "github.com/sf2loki/sf2loki-ha/internal/answers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// client is this package's client, for the table of answers.
var client = table.Client{
	Service: table.K8s,
	Open: func(t *testing.T, url string) coordinator.LeaseStore {
		t.Helper()
		s, err := k8slease.Open(t.Context(), k8slease.Config{Namespace: table.Namespace, Name: table.LeaseName, Kubeconfig: kubeconfig(t, url, "{token: hunter2}")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	},
	Form: func(t *testing.T, r wiretest.Request, s table.Sent) {
		t.Helper()
		if r.TransferEncoding != "" || r.ContentLength != int64(len(r.Body)) {
			t.Errorf("a body of %d bytes with length %d, %q", len(r.Body), r.ContentLength, r.TransferEncoding)
		}
		if s.Op != table.Load && r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("Content-Type: %q", r.Header.Get("Content-Type"))
		}
	},
	Secrets: []string{"hunter2", "/apis/"},
}

func TestEachAnswerOfKubernetesHasItsClassAndIsAskedForOnce(t *testing.T) {
	table.Run(t, client)
}

func TestSilenceEndsWithTheContext(t *testing.T) {
	table.RunSilent(t, client)
}
