package childconfig

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommand(t *testing.T) {
	in := []string{"{child_config}", "--config={child_config}", "x"}
	if got := Command(in, "/p"); !slices.Equal(got, []string{"{child_config}", "--config=/p", "x"}) {
		t.Errorf("%q", got)
	}
	if !Wanted(in) || Wanted(in[:1]) || Wanted(nil) {
		t.Error("only arguments count")
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	first, err := Write(dir, []byte("a: 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := Write(dir, nil)
	if err != nil || first == second {
		t.Fatalf("%s %s %v", first, second, err)
	}
	info, err := os.Stat(first)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if data, err := os.ReadFile(first); err != nil || string(data) != "a: 1\n" {
		t.Errorf("%q %v", data, err)
	}
	_, err = Write(filepath.Join(dir, "missing"), []byte("hidden"))
	if err == nil || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), "service.runtime_dir") {
		t.Errorf("%v", err)
	}
	t.Setenv("TMPDIR", dir)
	path, err := Write("", nil)
	if err != nil || (filepath.Dir(path) != dir && filepath.Dir(path) != defaultDir) {
		t.Errorf("%s %v", path, err)
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}

func TestFreeAddr(t *testing.T) {
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
