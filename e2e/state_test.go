package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/cas/file"
	"github.com/sf2loki/sf2loki-ha/cas/s3"
	"github.com/sf2loki/sf2loki-ha/checkpoint"
	"github.com/sf2loki/sf2loki-ha/coordinator"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// configFile writes the configuration of a backend for commands beside the pair.
func configFile(t *testing.T, b backend) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(b.config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// checkpoints is what "state show" says.
func checkpoints(t *testing.T, b backend, config string) map[string]string {
	t.Helper()
	code, out, errs := invoke(t, b.env, "state", "show", "--config", config, "--json")
	var shown struct{ Checkpoints map[string]string }
	if err := json.Unmarshal([]byte(out), &shown); code != 0 || err != nil {
		t.Fatalf("state show: code %d, %v, %s", code, err, errs)
	}
	return shown.Checkpoints
}

func TestCheckpointsOfARunningPairAreRepairedUnderAHold(t *testing.T) {
	for name, open := range backends() {
		b := open(t) // its environment is the parent's, so that the pairs may run side by side
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repairUnderAHold(t, b)
		})
	}
}

func repairUnderAHold(t *testing.T, b backend) {
	p := newPair(t, b)
	config := configFile(t, b)

	// 1. While it is live, a change is refused; the message says by whom and what to do.
	held := b.record(t)
	code, out, errs := invoke(t, b.env, "state", "set", "--config", config, "operator:note", "good")
	if code != 1 || out != "" {
		t.Fatalf("code %d, %q, %q", code, out, errs)
	}
	for _, want := range []string{fmt.Sprintf("held by %q, epoch %d", held.Holder, held.Epoch), "renewed", "Hold the pair", "--wait", "--force"} {
		if !strings.Contains(errs, want) {
			t.Errorf("does not say %q: %s", want, errs)
		}
	}
	// A leader that renews is not dead, however long one watches.
	if code, _, errs := invoke(t, b.env, "state", "set", "--config", config, "--wait", "operator:note", "good"); code != 1 || !strings.Contains(errs, "renewed while this command watched") {
		t.Errorf("--wait: code %d, %s", code, errs)
	}
	if _, there := checkpoints(t, b, config)["operator:note"]; there {
		t.Fatal("a refused command wrote")
	}

	// 2. Under a hold it waits for the release and succeeds.
	b.ask(t, func(r coordinator.Request) coordinator.Request {
		return r.WithHold(&coordinator.Hold{ID: "h", Reason: "repair", By: "test", For: 10 * time.Minute})
	})
	code, out, errs = invoke(t, b.env, "state", "set", "--config", config, "operator:note", "good")
	if code != 0 || out != "sf2loki: set operator:note = good\n" {
		t.Fatalf("under a hold: code %d, %q, %s", code, out, errs)
	}
	if rec := b.record(t); rec.State != coordinator.Released {
		t.Errorf("written while the lease was %s", rec.State)
	}
	if got := checkpoints(t, b, config)["operator:note"]; got != "good" {
		t.Errorf("%q", got)
	}

	// 3. Taken back, the pair goes on where it was, and keeps what was written.
	b.ask(t, func(r coordinator.Request) coordinator.Request { return r.WithHold(nil) })
	next := p.successor(t, 8*time.Second)
	time.Sleep(3 * time.Second) // some commits
	if after := checkpoints(t, b, config); after["operator:note"] != "good" || len(after) < 2 {
		t.Errorf("%v", after)
	}
	if rec := b.record(t); rec.Epoch != next.Epoch {
		t.Errorf("the term of epoch %d ended, %d leads", next.Epoch, rec.Epoch)
	}
	p.sound(t)
}

func TestARefusedChangeLeavesTheFileOfALivePairAlone(t *testing.T) {
	b := fileBackend(t)
	b.config += "workload: {unfenced_state: accept}\n"
	// Work that never writes: every change of the file would be ours.
	c := newCluster(t, b, "/bin/sleep", "1000")
	if a := start(t, c, "A"); !a.AwaitReady("ready", 30*time.Second) {
		t.Fatal("not ready")
	}
	config := configFile(t, b)
	path := filepath.Join(filepath.Dir(strings.TrimSuffix(b.asking.Describe(), ".request")), "state.json")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	input := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(input, []byte(`{"K": "good"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"set", "K", "good"}, {"delete", "K"}, {"import", input}, {"copy", "file:" + input, "file:" + path}, {"repair-fence", "--epoch", "99"}, {"set", "--dry-run", "K", "good"},
	} {
		code, out, errs := invoke(t, nil, append([]string{"--config", config, "state"}, args...)...)
		if code != 1 || out != "" || !strings.Contains(errs, `held by "A"`) {
			t.Errorf("%v: code %d, %q, %s", args, code, out, errs)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("changed, %v", err)
	}
}

func TestWithoutAnElectionASecondReplicaAndEveryStateVerbAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	b := backend{config: fmt.Sprintf("coordinate: {type: noop}\nstate: {file: {path: %s}}\n", path)}
	c := newCluster(t, b) // the canary commits into the file beside the lock
	first := start(t, c, "A")
	if !first.AwaitReady("ready", 20*time.Second) {
		t.Fatal("not ready")
	}
	second := start(t, c, "B")
	if !second.Wait(20*time.Second) || second.ExitCode() != 2 {
		t.Fatalf("the second ended with %d", second.ExitCode())
	}
	if log, err := os.ReadFile(second.LogFile); err != nil || !strings.Contains(string(log), path+" is in use") {
		t.Errorf("%s, %v", log, err)
	}
	config := configFile(t, b)
	for _, args := range [][]string{{"show"}, {"export"}, {"set", "K", "v"}, {"delete", "K"}} {
		code, out, errs := invoke(t, nil, append([]string{"state", "--config", config}, args...)...)
		if code != 1 || out != "" || !strings.Contains(errs, "--force") || !strings.Contains(errs, path) {
			t.Errorf("%v: code %d, %q, %s", args, code, out, errs)
		}
	}
	if code, out, errs := invoke(t, nil, "state", "show", "--config", config, "--force"); code != 0 || !strings.Contains(out, "checkpoint(s)") {
		t.Errorf("show --force: code %d, %s", code, errs)
	}
	c.Close()
	if code, out, errs := invoke(t, nil, "state", "show", "--config", config); code != 0 || !strings.Contains(out, "checkpoint(s)") {
		t.Errorf("afterwards: code %d, %s", code, errs)
	}
}

func TestACopyThatIsKilledLeavesTheOldOrTheNewDocument(t *testing.T) {
	srv := testservers.StartS3(t)
	env := []string{"AWS_ACCESS_KEY_ID=" + srv.AccessKey, "AWS_SECRET_ACCESS_KEY=" + srv.SecretKey, "AWS_EC2_METADATA_DISABLED=true"}
	t.Setenv("AWS_ACCESS_KEY_ID", srv.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", srv.SecretKey)
	bucket, err := s3.Open(t.Context(), s3.Config{Bucket: srv.Bucket, Region: srv.Region, EndpointURL: srv.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	dir := t.TempDir()
	documents := map[string]string{} // content by name
	for _, name := range []string{"old", "new"} {
		var doc checkpoint.Document
		for i := range 3000 {
			doc.Set(fmt.Sprintf("%s:%d", name, i), strings.Repeat(name, 20))
		}
		documents[name] = string(doc.Encode())
		if err := os.WriteFile(filepath.Join(dir, name), doc.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range []struct {
		reg   cas.Register
		place string
	}{
		{bucket.Register("x.json"), "s3://" + srv.Bucket + "/x.json"},
		{file.New(filepath.Join(dir, "target")), "file:" + filepath.Join(dir, "target")},
	} {
		t.Run(target.place, func(t *testing.T) {
			copying := func(name string) *exec.Cmd {
				args := []string{"state", "copy", "--replace", "file:" + filepath.Join(dir, name), target.place}
				if strings.HasPrefix(target.place, "s3:") {
					args = append(args, "--to-endpoint-url", srv.Endpoint, "--to-region", srv.Region)
				}
				cmd := exec.Command(binary(t), args...)
				cmd.Env = append([]string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, env...)
				return cmd
			}
			var whole time.Duration
			for _, name := range []string{"new", "old"} {
				begun := time.Now()
				if out, err := copying(name).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				whole = time.Since(begun)
			}
			now := "old"
			killed, landed := 0, 0
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
				next := map[string]string{"old": "new", "new": "old"}[now]
				cmd := copying(next)
				var errs bytes.Buffer
				cmd.Stderr = &errs
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				timer := time.AfterFunc(rand.N(whole*3/2), func() { _ = cmd.Process.Kill() })
				err := cmd.Wait()
				timer.Stop()
				if errs.Len() > 0 {
					t.Fatalf("%v: %s", err, errs.String())
				}
				if err != nil {
					killed++
				}
				v, loadErr := target.reg.Load(t.Context())
				switch {
				case loadErr != nil:
					t.Fatal(loadErr)
				case string(v.Data) == documents[next]:
					landed++
					now = next
				case string(v.Data) != documents[now] || err == nil:
					t.Fatalf("neither the old nor the new document: %d bytes, %v", len(v.Data), err)
				}
			}
			if killed < 5 || landed < 1 {
				t.Errorf("%d copies killed, %d landed: too few to show anything", killed, landed)
			}
			t.Logf("%d copies killed, %d landed; one takes %v", killed, landed, whole)
			// Nothing that is left behind is in the way.
			if out, err := copying("new").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
