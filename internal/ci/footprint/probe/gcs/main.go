// Command gcs is the footprint of the Cloud Storage client.
package main

import (
	"context"

	"github.com/sf2loki/sf2loki-ha/cas/gcs"
	"github.com/sf2loki/sf2loki-ha/internal/ci/footprint/resident"
)

func main() {
	b, err := gcs.Open(context.Background(), gcs.Config{Bucket: "b-1", EndpointURL: "http://127.0.0.1:1"})
	resident.Must(err)
	_, _ = b.Register("k").Load(context.Background())
	resident.Print(b)
}
