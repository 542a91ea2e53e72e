package gcs_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

func probe(ctx context.Context, cfg gcs.Config) cas.ProbeReport {
	return cas.Probe(ctx, cas.ProbeConfig{Object: "sf2loki/leader.lease", CallTimeout: 5 * time.Second, Open: func(ctx context.Context) (cas.Bucket, error) {
		return gcs.Open(ctx, cfg)
	}})
}

func TestFakeGCSServerPassesTheProbeAlsoSeveralAtOnce(t *testing.T) {
	isolate(t)
	srv := testservers.StartGCS(t)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if r := probe(t.Context(), gcs.Config{Bucket: srv.Bucket, EndpointURL: srv.Endpoint}); r.Verdict != cas.ProbeOK || len(r.Left) > 0 {
				t.Errorf("%s%v", r, r.CleanUp)
			}
		})
	}
	wg.Wait()
}

func TestTheFirstAnswerOfAProbeDecidesWhatItCan(t *testing.T) {
	isolate(t)
	for name, tt := range map[string]struct {
		answer  wiretest.Answer
		verdict cas.Verdict
		class   cas.Class
		text    string
	}{
		"501":                {bare(501), cas.ProbeUnsupported, cas.Unsupported, "conditional writes are not supported"},
		"400 notImplemented": {jsonError(400, "notImplemented", "no"), cas.ProbeUnsupported, cas.Unsupported, "conditional writes are not supported"},
		"403":                {jsonError(403, "forbidden", "no"), cas.ProbeUnknown, cas.Denied, "the probe was denied"},
		"404 of the bucket":  {jsonError(404, "notFound", "The specified bucket does not exist."), cas.ProbeUnknown, cas.NoBucket, "there is no such bucket"},
		"429":                {jsonError(429, "rateLimitExceeded", "slow down"), cas.ProbeUnknown, cas.Contended, "fewer requests"},
		"503":                {bare(503), cas.ProbeUnknown, cas.Ambiguous, "did not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.Start(t, tt.answer, bare(204))
			r := probe(t.Context(), gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()})
			if r.Verdict != tt.verdict || cas.ClassOf(r.Err()) != tt.class || !strings.Contains(r.Err().Error(), tt.text) {
				t.Errorf("%s, %v", r.Verdict, r.Err())
			}
			if sent := srv.Requests(); len(sent) != 2 || sent[0].Method != "POST" || !strings.Contains(sent[0].Target, "ifGenerationMatch=0") || sent[1].Method != "DELETE" {
				t.Errorf("%d requests: %+v", len(sent), sent)
			}
		})
	}
}

func TestARemovalIsOneRequestAndItsRefusalNamesThePermission(t *testing.T) {
	isolate(t)
	for name, tt := range map[string]struct {
		answer wiretest.Answer
		want   cas.Class
	}{
		"204":                   {bare(204), ""},
		"404 of the object":     {jsonError(404, "notFound", "No such object: bkt/x"), ""},
		"404 of an emulator":    {jsonError(404, "notFound", "Not Found"), ""},
		"404 of the bucket":     {jsonError(404, "notFound", "The specified bucket does not exist."), cas.NoBucket},
		"404 of something else": {text(404, "no route"), cas.Ambiguous},
		"403":                   {jsonError(403, "forbidden", "no"), cas.Denied},
		"500":                   {bare(500), cas.Ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			srv := wiretest.Start(t, tt.answer)
			err := open(t, gcs.Config{Bucket: "bkt", EndpointURL: srv.URL()}).Scratch("sf2loki/leader.lease").Remove(t.Context(), "x-1")
			if cas.ClassOf(err) != tt.want {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			if tt.want == cas.Denied && !strings.Contains(err.Error(), "storage.objects.delete") {
				t.Errorf("no permission is named: %v", err)
			}
			if sent := srv.Requests(); len(sent) != 1 || sent[0].Method != "DELETE" || !strings.Contains(sent[0].Target, "leader.lease.probe%2Fx-1") {
				t.Errorf("%+v", sent)
			}
		})
	}
}
