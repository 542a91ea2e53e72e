package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
)

var update = flag.Bool("update", false, "write docs/config.md anew")

const (
	referencePath  = "../../docs/config.md"
	referenceBegin = "<!-- generated from internal/config/config.go: go test ./internal/config -run TestTheReferenceIsCurrent -update -->\n"
	referenceEnd   = "<!-- end -->\n"
)

// The tables of docs/config.md are the structs; the text before them is written
// by hand.
func TestTheReferenceIsCurrent(t *testing.T) {
	data, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), referenceBegin)
	old, after, closed := strings.Cut(rest, referenceEnd)
	if !ok || !closed {
		t.Fatalf("%s lacks the marks around its generated part:\n%s%s", referencePath, referenceBegin, referenceEnd)
	}
	generated := referenceTables(t)
	if generated == old {
		return
	}
	if !*update {
		t.Fatalf("%s is stale; run: go test ./internal/config -run TestTheReferenceIsCurrent -update", referencePath)
	}
	if err := os.WriteFile(referencePath, []byte(before+referenceBegin+generated+referenceEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What the hand-written part shows is valid: variables, configurations,
// durations.
func TestTheIntroductionOfTheReferenceIsTrue(t *testing.T) {
	data, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, _ := strings.Cut(string(data), referenceBegin)
	names := map[string]bool{}
	schema.each(func(n *schemaNode) { names[envName(n.path)] = true })
	for _, name := range regexp.MustCompile("`(SF2LOKI_[A-Z0-9_]*[A-Z0-9])(?:=[^`]*)?`").FindAllStringSubmatch(intro, -1) {
		if misspelt(strings.Split(strings.ToLower(strings.TrimPrefix(name[1], "SF2LOKI_")), "__")) == nil && !names[name[1]] && !strings.HasPrefix(name[1], "SF2LOKI_HA_") {
			t.Errorf("%s is not the variable of a key", name[1])
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (\\S+) \\|$").FindAllStringSubmatch(intro, -1)
	if len(rows) < 5 {
		t.Errorf("%d rows of durations", len(rows))
	}
	for _, row := range rows {
		want, err := time.ParseDuration(row[2])
		if err != nil {
			t.Fatal(err)
		}
		if c := load(t, "service: {unready_after_sink_failing: "+row[1]+"}"); c.Service.UnreadyAfterSinkFailing != want {
			t.Errorf("%s is %v, not %s", row[1], c.Service.UnreadyAfterSinkFailing, row[2])
		}
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(intro, -1) {
		load(t, block[1], "BUCKET=b")
	}
}

// referenceTables writes the tables: one for each section that has values.
func referenceTables(t *testing.T) string {
	t.Helper()
	comments := fieldComments(t)
	var b strings.Builder
	var section func(n *schemaNode, v reflect.Value, what string)
	section = func(n *schemaNode, v reflect.Value, what string) {
		if n.path != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", n.path, what)
		}
		rows := 0
		for _, c := range n.children {
			if c.kind == sectionField {
				continue
			}
			if rows++; rows == 1 {
				b.WriteString("\n| key | type | default | meaning |\n|---|---|---|---|\n")
			}
			goName := v.Type().Field(c.field).Name
			meaning, standard := splitComment(t, c, comments[v.Type().Name()+"."+goName], v.Field(c.field))
			meaning = humane(goName, c.name, meaning)
			fmt.Fprintf(&b, "| `%s`<br>`%s` | %s | %s | %s |\n", c.path, envName(c.path), typeNames[c.kind], standard, meaning)
		}
		for _, c := range n.children {
			if c.kind == sectionField {
				field := v.Field(c.field)
				section(c, field, humane(field.Type().Name(), c.name, comments[field.Type().Name()]))
			}
		}
	}
	section(schema, reflect.ValueOf(*defaults()), "")
	b.WriteString("\n")
	return b.String()
}

var typeNames = map[fieldKind]string{
	textField: "text", boolField: "true or false", durationField: "duration", listField: "list of texts", opaqueField: "section of sf2loki",
}

// fieldComments are the comments of config.go: "Type" and "Type.Field".
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "config.go", nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	line := func(c *ast.CommentGroup) string { return strings.Join(strings.Fields(c.Text()), " ") }
	for _, decl := range file.Decls {
		types, ok := decl.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			name := spec.(*ast.TypeSpec).Name.Name
			comments[name] = line(types.Doc)
			structure, ok := spec.(*ast.TypeSpec).Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range structure.Fields.List {
				for _, ident := range f.Names {
					comments[name+"."+ident.Name] = line(f.Doc)
				}
			}
		}
	}
	return comments
}

var defaultSentence = regexp.MustCompile(`(?:^| )Default(:?) (.*?)\.(?: |$)`)

// splitComment takes the sentence about the default out of a field's comment
// and holds it against the value that the field really gets.
func splitComment(t *testing.T, n *schemaNode, comment string, value reflect.Value) (meaning, standard string) {
	t.Helper()
	var actual string
	switch v := value.Interface().(type) {
	case string:
		actual = v
	case bool:
		actual = fmt.Sprint(v)
	case time.Duration:
		if v != 0 {
			actual = v.String()
		}
	}
	standard = "-"
	if m := defaultSentence.FindStringSubmatchIndex(comment); m != nil {
		constant, text := m[2] == m[3], comment[m[4]:m[5]]
		meaning = strings.TrimSpace(comment[:m[0]] + " " + comment[m[1]:])
		standard = text
		if constant {
			text = strings.Trim(text, `"`)
			if d, err := time.ParseDuration(strings.ReplaceAll(text, " ", "")); err == nil && n.kind == durationField {
				text = d.String()
			}
			if text != actual {
				t.Errorf("%s: the comment says the default is %q, but it is %q", n.path, text, actual)
			}
			standard = "`" + strings.ReplaceAll(strings.Trim(comment[m[4]:m[5]], `"`), " ", "") + "`"
		} else if actual != "" {
			t.Errorf("%s: the default is %q, but the comment says %q", n.path, actual, text)
		}
	} else {
		meaning = comment
		if actual != "" {
			t.Errorf("%s: the default is %q, and the comment does not say so", n.path, actual)
		}
	}
	for _, typ := range types {
		if _, refused := notInBuild[typ]; refused && n.path == "coordinate.type" {
			meaning += " Not in this build: " + typ + "."
		}
	}
	return meaning, strings.ReplaceAll(standard, "|", `\|`)
}

// humane turns the comment of a Go name into prose about a key: the name at its
// beginning goes, or becomes the words of the key.
func humane(goName, key, comment string) string {
	if rest, ok := strings.CutPrefix(comment, goName+" "); ok {
		switch verb, after, _ := strings.Cut(rest, " "); verb {
		case "is":
			comment = after
		case "of":
			comment = strings.NewReplacer("_url", " URL", "_", " ").Replace(key) + " " + rest
		default:
			comment = rest
		}
	}
	runes := []rune(comment)
	if len(runes) > 0 {
		runes[0] = unicode.ToUpper(runes[0])
	}
	return strings.ReplaceAll(string(runes), "|", `\|`)
}
