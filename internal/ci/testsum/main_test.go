package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheVerdictCountsWhatRan(t *testing.T) {
	const pass = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
	const fail = `{"Action":"output","Package":"p","Test":"TestB","Output":"why\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestB"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n"
	const skip = `{"Action":"skip","Package":"p","Test":"TestC"}` + "\n"
	const end = "go test ended with 0\n"
	const begun = `{"Action":"start","Package":"z"}` + "\n"
	const broken = `{"Action":"fail","Package":"q"}` + "\n"
	for name, c := range map[string]struct {
		stream string
		ci     bool
		last   string
		ok     bool
	}{
		"all pass":                  {pass + end, true, "1 passed, 0 failed", true},
		"one fails":                 {pass + fail + end, true, "1 passed, 1 failed", false},
		"a skip in CI is a failure": {pass + skip + end, true, "1 passed, 1 failed", false},
		"a skip elsewhere is not":   {pass + skip + end, false, "1 passed, 0 failed", true},
		"a package does not build":  {pass + broken + end, true, "1 passed, 1 failed", false},
		"nothing ran":               {end, true, "0 passed, 0 failed", false},
		"the stream is cut off":     {pass, true, "1 passed, 1 failed", false},
		"a package has no verdict":  {pass + begun + end, true, "1 passed, 1 failed", false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			s := newSummary(&out, c.ci)
			if err := s.read(strings.NewReader(c.stream)); err != nil {
				t.Fatal(err)
			}
			ok := s.finish()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if ok != c.ok || lines[len(lines)-1] != c.last {
				t.Errorf("ok %v, last line %q; want %v, %q\n%s", ok, lines[len(lines)-1], c.ok, c.last, out.String())
			}
			if strings.Contains(c.stream, "why") && !strings.Contains(out.String(), "why") {
				t.Error("the output of a failed test is not shown")
			}
		})
	}
}
