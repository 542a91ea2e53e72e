package testservers_test

import (
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

func TestServersAreReadyAndGoneAfterTheTest(t *testing.T) {
	var endpoints []string
	t.Run("running", func(t *testing.T) {
		s3, gcs := testservers.StartS3(t), testservers.StartGCS(t)
		endpoints = []string{s3.Endpoint, gcs.Endpoint}
		for _, url := range endpoints {
			if !strings.HasPrefix(url, "http://127.0.0.1:") {
				t.Errorf("%s is not on loopback", url)
			}
			resp, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	})
	for _, url := range endpoints {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			t.Errorf("%s still answers", url)
		}
	}
}

// fatal is a testing.TB that stops the goroutine and keeps the message.
type fatal struct {
	testing.TB
	message chan string
}

func (f fatal) Fatalf(format string, args ...any) {
	f.message <- format
	runtime.Goexit()
}

func TestMissingBinaryFailsTheTestWithTheCommandThatBuildsIt(t *testing.T) {
	t.Setenv(testservers.BinDirEnv, filepath.Join(t.TempDir(), "none"))
	message := make(chan string, 1)
	go func() {
		defer close(message)
		testservers.Bin(fatal{t, message}, "versitygw")
	}()
	if m := <-message; !strings.Contains(m, "make tools") {
		t.Errorf("message %q does not say how to build it", m)
	}
}
