// Command footprint prints what each dependency costs in binary size and
// resident memory, as the table in docs/footprint.md. Run it with
// "make footprint"; it builds one small program per dependency.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/sf2loki/sf2loki-ha/internal/ci/footprint/resident"
)

// runs is how often each program is run; the median counts.
const runs = 5

func main() {
	dir, err := os.MkdirTemp("", "footprint-")
	resident.Must(err)
	defer os.RemoveAll(dir)
	fmt.Println("| program | binary, MB | resident after one request, MB |")
	fmt.Println("|---|---|---|")
	for _, p := range []struct{ name, pkg string }{
		{"net/http client alone", "none"},
		{"with Prometheus metrics", "prometheus"},
		{"with the S3 client", "s3"},
		{"with the GCS client", "gcs"},
		{"with the Kubernetes client", "k8s"},
	} {
		bin := filepath.Join(dir, p.pkg)
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "./internal/ci/footprint/probe/"+p.pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stderr = os.Stderr
		resident.Must(build.Run())
		fmt.Printf("| %s | %.1f | %.1f |\n", p.name, size(bin), median(bin))
	}
	fmt.Printf("| sf2loki-ha, whole | %.1f | see the tests of a standby below |\n", size("bin/sf2loki-ha"))
}

func size(path string) float64 {
	info, err := os.Stat(path)
	resident.Must(err)
	return float64(info.Size()) / 1e6
}

func median(bin string) float64 {
	var kb []float64
	for range runs {
		out, err := exec.Command(bin).Output()
		resident.Must(err)
		v, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		resident.Must(err)
		kb = append(kb, v)
	}
	sort.Float64s(kb)
	return kb[len(kb)/2] / 1024
}
