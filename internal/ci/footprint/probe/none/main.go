// Command none is the base line of the footprint: an HTTP client and nothing
// of ours.
package main

import (
	"net/http"

	"github.com/sf2loki/sf2loki-ha/internal/ci/footprint/resident"
)

func main() { resident.Print(http.DefaultClient) }
