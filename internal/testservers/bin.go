package testservers

import (
	"os"
	"path/filepath"
	"testing"
)

// BinDirEnv names the environment variable that overrides where binaries are.
const BinDirEnv = "SF2LOKI_HA_BIN_DIR"

// Bin returns the path of a third-party binary and fails the test if there is
// none.
func Bin(t testing.TB, name string) string {
	t.Helper()
	dir := os.Getenv(BinDirEnv)
	if dir == "" {
		dir = filepath.Join(moduleRoot(t), ".bin")
	}
	path := filepath.Join(dir, name)
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		t.Fatalf("testservers: no %s in %s: run \"make tools\" at the root of the repository (some minutes, once), or set %s", name, dir, BinDirEnv)
	}
	return path
}

// moduleRoot walks up from the test's directory to the go.mod it belongs to.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatalf("testservers: no go.mod above the test; set %s", BinDirEnv)
		}
		dir = parent
	}
}
