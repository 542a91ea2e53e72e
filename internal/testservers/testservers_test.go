package testservers_test

import (
	"net"
	"net/http"
	neturl "net/url"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

func TestServersAreReadyAndGoneAfterTheTest(t *testing.T) {
	var endpoints []string
	t.Run("running", func(t *testing.T) {
		s3, gcs, kube := testservers.StartS3(t), testservers.StartGCS(t), testservers.StartKube(t)
		for url, client := range map[string]*http.Client{
			s3.Endpoint: http.DefaultClient, gcs.Endpoint: http.DefaultClient, kube.Etcd + "/health": http.DefaultClient, kube.URL: kube.Client,
		} {
			u, err := neturl.Parse(url)
			if err != nil || u.Hostname() != "127.0.0.1" {
				t.Errorf("%s is not on loopback", url)
			}
			endpoints = append(endpoints, u.Host)
			resp, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	})
	for _, addr := range endpoints {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			t.Errorf("%s still answers", addr)
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
