package checkpoint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/mem"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/internal/faultcas"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// filled seals a document of about that size, in keys of 200 bytes.
func filled(b *testing.B, reg cas.Register, size int) *checkpoint.Session {
	b.Helper()
	s, err := checkpoint.Open(reg).Seal(b.Context(), &term{epoch: 1, id: "t1"})
	if err != nil {
		b.Fatal(err)
	}
	values := map[string]string{}
	for i := range size / 200 {
		values[fmt.Sprintf("org=prod:eventlogfile:%06d", i)] = strings.Repeat("x", 165)
	}
	if err := s.Commit(b.Context(), values); err != nil {
		b.Fatal(err)
	}
	return s
}

// commits measures commits of one key, one after the other: requests, bytes sent
// and memory of each.
func commits(b *testing.B, reg cas.Register, size int) {
	counted := faultcas.Wrap(reg, nil)
	s := filled(b, counted, size)
	loads, writes := counted.Calls(faultcas.Load), counted.Calls(faultcas.Replace)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := s.Commit(b.Context(), map[string]string{"org=prod:eventlogfile:000001": fmt.Sprint(i)}); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
	b.ReportMetric(float64(counted.Calls(faultcas.Load)-loads)/float64(b.N), "GET/commit")
	b.ReportMetric(float64(counted.Calls(faultcas.Replace)-writes)/float64(b.N), "PUT/commit")
	v, err := reg.Load(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(v.Data)), "bytes/PUT")
}

func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{10 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("mem/%dKiB", size>>10), func(b *testing.B) { commits(b, mem.New().Open().Register("state.json"), size) })
		b.Run(fmt.Sprintf("versitygw/%dKiB", size>>10), func(b *testing.B) {
			srv := testservers.StartS3(b)
			b.Setenv("AWS_ACCESS_KEY_ID", srv.AccessKey)
			b.Setenv("AWS_SECRET_ACCESS_KEY", srv.SecretKey)
			bucket, err := s3.Open(b.Context(), s3.Config{Bucket: srv.Bucket, Region: srv.Region, EndpointURL: srv.Endpoint})
			if err != nil {
				b.Fatal(err)
			}
			defer bucket.Close()
			commits(b, bucket.Register("sf2loki/state.json"), size)
		})
	}
}
