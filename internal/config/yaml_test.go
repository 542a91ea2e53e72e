package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestYAMLErrorsHaveLineAndColumn(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"second colon":                {"a: b: c\n", "FILE:1:5: YAML syntax error: mapping values are not allowed in this context"},
		"tab":                         {"a:\n\t- b", "FILE:2:1: YAML syntax error: a tab is used for indentation, where YAML takes only spaces; replace the tab with spaces"},
		"tab after spaces":            {"state:\n  store: none\n  \tfile: {}\n", "FILE:3:3: YAML syntax error: a tab is used for indentation, where YAML takes only spaces; replace the tab with spaces"},
		"tab on the first line":       {"\ufeff\tstate: {}\n", "FILE:1:1: YAML syntax error: a tab is used for indentation, where YAML takes only spaces; replace the tab with spaces"},
		"tab in a block":              {"state:\n  store: |\n\t none\n", "FILE:3:1: YAML syntax error: a tab is used for indentation, where YAML takes only spaces; replace the tab with spaces"},
		"tab that is not indentation": {"state:\n  store: \t@x\n", "FILE:2:11: YAML syntax error: found character that cannot start any token"},
		"open quote":                  {"a: 1\nb: 'x\n\nc: y\n", "FILE:5:1: YAML syntax error: found unexpected end of stream, while scanning a quoted scalar that begins at 2:4"},
		"open brace":                  {"a: 1\nb: {c: 1\nd: 2\n", "FILE:3:2: YAML syntax error: did not find expected ',' or '}', while parsing a flow mapping that begins at 2:4"},
		"indentation":                 {"coordinate:\n  type: noop\n state:\n", "FILE:3:2: YAML syntax error: did not find expected key, while parsing a block mapping that begins at 1:1"},
		"unknown anchor":              {"state:\n  store: *x\n", "FILE:2:10: YAML syntax error: unknown anchor 'x' referenced"},
		"not UTF-8":                   {"state:\n  store: \"\xc3\x28\"\n", "FILE:2:11: the file is not UTF-8 text (byte 0xc3 at offset 17); save it as UTF-8"},
		"UTF-16":                      {"\xff\xfea\x00", "FILE:1:1: the file is not UTF-8 text (byte 0xff at offset 0); save it as UTF-8"},
		"control character":           {"a: é\x01", "FILE:1:5: the file has a control character (U+0001) that YAML does not allow; remove it"},
		"two documents":               {"state: {}\n---\nservice: {}\n", "FILE:2:1: the file has more than one YAML document; remove the one that begins here"},
		"empty second document":       {"state: {}\n---\n", "FILE:2:1: the file has more than one YAML document; remove the one that begins here"},
		"error in second":             {"state: {}\n---\n'\n", "FILE:4:1: YAML syntax error: found unexpected end of stream, while scanning a quoted scalar that begins at 3:1"},
		"top-level list":              {"- a\n", "FILE:1:1: must be a mapping with sections such as coordinate and state, but is a list"},
		"top-level text":              {"hello", `FILE:1:1: must be a mapping with sections such as coordinate and state, but is the text "hello"`},
		"top-level number":            {"3", `FILE:1:1: must be a mapping with sections such as coordinate and state, but is the number "3"`},
		"list as key":                 {"? [a]\n: b\n", "FILE:1:3: a key must be a plain name, but is a list or a mapping"},
		"duplicate section":           {"state: {}\nservice: {}\nstate: {store: s3}\n", "state: is given twice, on line 1 and on line 3; remove one (FILE:3:1)"},
		"duplicate key":               {"state:\n  store: s3\n  store: file\n", "state.store: is given twice, on line 2 and on line 3; remove one (FILE:3:3)"},
		"duplicate of sf2loki":        {"sink: {}\nsink: {}\n", "sink: is given twice, on line 1 and on line 2; remove one (FILE:2:1)"},
		"duplicate anchor key":        {"state: {&k store: file, *k : s3}\n", "state.store: is given twice, on line 1 and on line 1; remove one (FILE:1:25)"},
		"circle":                      {"state: &s\n  file: *s\n", "state.file: contains itself through an alias (FILE:2:9)"},
		"merge circle":                {"state: &s\n  <<: *s\n", "state: contains itself through an alias (FILE:2:7)"},
		"merge of a text":             {"state:\n  <<: x\n", "state: the merge key << needs a mapping or a list of mappings (FILE:2:7)"},
	} {
		t.Run(name, func(t *testing.T) { exactly(t, problems(t, c.text), c.want) })
	}
}

func TestAliasesAndMergesWork(t *testing.T) {
	c := load(t, `
sources: {anchor: &times {ttl: 20s, renew_interval: 6s}, second: &more {ttl: 90s, poll_interval: 2s}}
coordinate:
  type: s3_lease
  s3_lease:
    bucket: &bucket shared-bucket
    <<: [*times, *more]
    renew_interval: 4s
  gcs_lease: {<<: *times}
state: {store: s3, s3: {bucket: *bucket}}
`)
	l := c.Coordinate.S3Lease
	if l.TTL != 20*time.Second || l.RenewInterval != 4*time.Second || l.PollInterval != 2*time.Second {
		t.Errorf("own keys win over merged ones, earlier over later: %+v", l)
	}
	if c.State.S3.Bucket != "shared-bucket" || c.Coordinate.GCSLease.TTL != 20*time.Second {
		t.Errorf("alias %q, merge %v", c.State.S3.Bucket, c.Coordinate.GCSLease.TTL)
	}
}

// A few hundred bytes stand for 9^9 values.
func TestAliasExplosionIsRefusedQuickly(t *testing.T) {
	var lists, merges strings.Builder
	lists.WriteString("sources:\n  - &l0 [x]\n")
	merges.WriteString("sources:\n  - &l0 {x: y}\n")
	for i := 1; i <= 9; i++ {
		refs := strings.TrimSuffix(strings.Repeat("*l"+string(rune('0'+i-1))+", ", 9), ", ")
		lists.WriteString("  - &l" + string(rune('0'+i)) + " [" + refs + "]\n")
		merges.WriteString("  - &l" + string(rune('0'+i)) + " {<<: [" + refs + "]}\n")
	}
	for _, text := range []string{lists.String() + "workload: {command: *l9}\n", merges.String() + "state: *l9\n"} {
		start := time.Now()
		one(t, problems(t, text), "stands for more than 10000 values once aliases are followed")
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("took %v", d)
		}
	}
}

func TestTextKeysRefuseOtherScalars(t *testing.T) {
	for plain, shown := range map[string]string{
		"123456": `the number "123456"; put it in quotes`, "60.0": `the number "60.0"; put it in quotes`, "yes": `the boolean "yes"; put it in quotes`,
		"off": `the boolean "off"; put it in quotes`, "2026-01-01": `the date "2026-01-01"; put it in quotes`, "12:30": `the number "12:30"; put it in quotes`,
		"0x1F": `the number "0x1F"; put it in quotes`, "017": `the number "017"; put it in quotes`, "": "empty or null; give a value or remove the line",
		"~": "empty or null; give a value or remove the line", ".inf": `the number ".inf"; put it in quotes`, "[a]": "a list", "{a: b}": "a mapping",
		"!!binary aGk=": "a value of a type that is not used here", "!mine x": "a value of a type that is not used here", "!!int '5'": `the number "5"; put it in quotes`,
	} {
		got := problems(t, "coordinate: {type: s3_lease, s3_lease: {bucket: "+plain+"}}\nstate: {store: none}")
		one(t, got, "coordinate.s3_lease.bucket: must be text, but is "+shown+" (FILE:1:")
	}
	for plain, want := range map[string]string{`"123"`: "123", "'yes'": "yes", "!!str 12": "12", "08": "08", "1e5": "1e5", "y": "y", "a-b": "a-b", "|\n      x.y": "x.y"} {
		c := load(t, "coordinate:\n  type: noop\n  s3_lease:\n    bucket: "+plain+"\n")
		if got := strings.TrimSpace(c.Coordinate.S3Lease.Bucket); got != want {
			t.Errorf("%s = %q, want %q", plain, got, want)
		}
	}
}

func TestOptionalKeysMayBeNull(t *testing.T) {
	c := load(t, "coordinate: {type: noop, s3_lease: {region: null, endpoint_url: ~}, k8s_lease: {kubeconfig: }}\nstate: {gcs: {service_file: null}}\n")
	if c.Coordinate.S3Lease.Region != "" || c.Coordinate.S3Lease.EndpointURL != "" {
		t.Errorf("%+v", c.Coordinate.S3Lease)
	}
}

func TestBooleansAsInYAML11(t *testing.T) {
	for text, want := range map[string]bool{
		"yes": true, "Yes": true, "ON": true, "true": true, "1": true, "1.0": true, `"t"`: true, `"Y"`: true, `"1"`: true,
		"no": false, "Off": false, "FALSE": false, "0": false, "0.0": false, `"f"`: false, `"N"`: false, `"off"`: false,
	} {
		if c := load(t, "state: {file: {shared: "+text+"}}"); c.State.File.Shared != want {
			t.Errorf("%s = %v, want %v", text, !want, want)
		}
	}
	for _, text := range []string{"2", `"ja"`, "[]", "~", "1.5", ".nan", `""`, "2026-01-01"} {
		one(t, problems(t, "state: {file: {shared: "+text+"}}"), "state.file.shared: must be true or false, but is ", "(FILE:1:24)")
	}
}

func TestSectionsMustBeMappings(t *testing.T) {
	for text, want := range map[string]string{
		"coordinate:\n": "coordinate: is an empty section (null); remove the line or put keys below it, indented (FILE:1:12)",
		"state: [a]\n":  "state: must be a section with keys such as store, but is a list (FILE:1:8)",
		"service: on\n": `service: must be a section with keys such as health_addr, but is the boolean "on" (FILE:1:10)`,
		"coordinate: {type: s3_lease, s3_lease: bucket}\nstate: {store: none}": `coordinate.s3_lease: must be a section with keys such as bucket, but is the text "bucket" (FILE:1:40)`,
	} {
		exactly(t, problems(t, text), want)
	}
}

func TestCommandMustBeAListOfTexts(t *testing.T) {
	c := load(t, "workload: {command: [sh, -c, 'echo a b', \"1\"]}")
	if got := strings.Join(c.Workload.Command, "|"); got != "sh|-c|echo a b|1" {
		t.Errorf("command %q", got)
	}
	for text, want := range map[string]string{
		"run it":        `must be a list of texts such as ["program", "argument"], but is a text`,
		"~":             "but is empty or null",
		"[a, 8080]":     "item 1 must be text, but is not; put it in quotes",
		"[a, [b]]":      "item 1 must be text",
		"['']":          `the first item is empty; it has to be the program, such as ["program", "argument"]`,
		`["a", "b\0c"]`: "item 1 holds a zero byte, which no argument can",
	} {
		one(t, problems(t, "workload: {command: "+text+"}"), "workload.command: ", want)
	}
	if c := load(t, "workload: {command: []}"); len(c.Workload.Command) != 0 {
		t.Errorf("command %q", c.Workload.Command)
	}
}

// A future version of the library may hide what is read from it.
func TestSyntaxPlaceFallsBackToTheMessage(t *testing.T) {
	for text, want := range map[string]int{"yaml: line 7: did not find expected key": 7, "yaml: found character": 1} {
		if got := messageLine(errors.New(text)); got != want {
			t.Errorf("%q: line %d, want %d", text, got, want)
		}
	}
	if v := field(reflect.ValueOf(3), "parser"); v.IsValid() || number(v, "line") != -1 {
		t.Error("a field was found in a number")
	}
}
