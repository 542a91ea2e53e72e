package childconfig

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The example of the page is what comes out, and the page names every key that
// is dropped.
func TestThePageIsTrue(t *testing.T) {
	data, err := os.ReadFile("../../docs/child-config.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d examples", len(blocks))
	}
	if got := document(t, blocks[0][1]); got != blocks[1][1] {
		t.Errorf("got:\n%s\nthe page:\n%s", got, blocks[1][1])
	}
	for key := range dropped {
		if !strings.Contains(string(data), "`"+key+"`") {
			t.Errorf("the page does not name %s", key)
		}
	}
}
