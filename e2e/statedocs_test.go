package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// Every line behind "$ " of docs/state.md is run, in order, in one directory, and
// prints what the document says it prints; … stands for anything.
func TestTheExamplesOfStateDocumentationDoWhatTheySay(t *testing.T) {
	text, err := os.ReadFile("../docs/state.md")
	if err != nil {
		t.Fatal(err)
	}
	srv := testservers.StartS3(t)
	srv.MakeBucket(t, "my-bucket")
	dir := t.TempDir()
	env := []string{
		"PATH=" + filepath.Dir(binary(t)) + ":" + os.Getenv("PATH"), "HOME=" + dir, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=" + srv.AccessKey, "AWS_SECRET_ACCESS_KEY=" + srv.SecretKey, "AWS_ENDPOINT_URL=" + srv.Endpoint,
	}
	files := regexp.MustCompile("(?s)`([a-z]+\\.yaml)`:\n\n```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(files) != 2 {
		t.Fatalf("%d configurations", len(files))
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f[1]), []byte(f[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ran := map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			command, want, _ := strings.Cut(strings.TrimSuffix(step, "\n"), "\n")
			cmd := exec.Command("sh", "-c", command)
			cmd.Dir, cmd.Env = dir, env
			out, _ := cmd.CombinedOutput() // what went wrong is part of the text
			got := strings.TrimSuffix(string(out), "\n")
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", "(?s:.*)") + "$"
			if !regexp.MustCompile(pattern).MatchString(got) {
				t.Errorf("$ %s\n got %s\nwant %s", command, got, want)
			}
			for _, word := range strings.Fields(command) {
				ran[word] = true
			}
		}
	}
	for _, verb := range []string{"show", "set", "delete", "export", "import", "copy", "repair-fence", "adopt", "--json", "--dry-run", "--force"} {
		if !ran[verb] {
			t.Errorf("no example with %s", verb)
		}
	}
}
