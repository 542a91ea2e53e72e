// Command s3 is the footprint of the S3 client.
package main

import (
	"context"

	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/internal/ci/footprint/resident"
)

func main() {
	b, err := s3.Open(context.Background(), s3.Config{Bucket: "b-1", Region: "us-east-1", EndpointURL: "http://127.0.0.1:1"})
	resident.Must(err)
	_, _ = b.Register("k").Load(context.Background())
	resident.Print(b)
}
