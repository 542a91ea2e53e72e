package socketapi

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The commands of docs/checkpoint-api.md, in their order, with the status that
// stands behind each. curl itself is not needed: its few options are read here.
func TestTheCommandsOfTheDocumentationWork(t *testing.T) {
	text, err := os.ReadFile("../../docs/checkpoint-api.md")
	if err != nil {
		t.Fatal(err)
	}
	f := serve(t)
	line := regexp.MustCompile(`(?m)^api (?:-X (\w+) )?(?:--data-binary '([^']*)' )?http://socket(\S+) +# (\d+)$`)
	commands := line.FindAllStringSubmatch(string(text), -1)
	for _, c := range commands {
		method := c[1]
		if method == "" {
			method = "GET"
		}
		status, body := f.do(method, c[3], c[2], "7")
		if want, _ := strconv.Atoi(c[4]); status != want {
			t.Errorf("%s: %d %s", c[0], status, body)
		}
	}
	if want := strings.Count(string(text), "\napi ") - strings.Count(string(text), "\napi ("); len(commands) != want || want < 5 {
		t.Errorf("%d of %d commands are understood", len(commands), want)
	}
}
