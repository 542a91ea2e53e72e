package answers

import (
	"testing"

	"github.com/sf2loki/sf2loki-ha/cas"
)

func TestNoCellIsEmpty(t *testing.T) {
	known := map[string]bool{}
	for _, m := range Meanings {
		if known[m.Name] {
			t.Errorf("row %q occurs twice", m.Name)
		}
		known[m.Name] = true
	}
	for name := range silent {
		if !known[name] {
			t.Errorf("silent: there is no row %q", name)
		}
	}
	columns, cells, said, variants := 0, 0, 0, 0
	for _, s := range Services() {
		table := rows(s)
		for name := range table {
			if !known[name] {
				t.Errorf("%s: there is no row %q", s, name)
			}
		}
		columns += len(Requests(s))
		for _, m := range Meanings {
			for _, q := range Requests(s) {
				c, ok := table[m.Name][q.Name]
				if !ok {
					t.Errorf("%s, %s, %s: an empty cell", s, q.Name, m.Name)
					continue
				}
				cells++
				if c.Never == "" {
					said++
				}
				variants += len(c.Answers)
				checkCell(t, string(s)+", "+q.Name+", "+m.Name, q, m, c)
			}
			if extra := len(table[m.Name]) - len(Requests(s)); extra != 0 {
				t.Errorf("%s, %s: %d cells too many", s, m.Name, extra)
			}
		}
	}
	if want := len(Meanings) * columns; cells != want {
		t.Errorf("%d cells of %d", cells, want)
	}
	t.Logf("%d rows x %d columns = %d cells: %d with answers (%d answers), %d that cannot occur", len(Meanings), columns, cells, said, variants, cells-said)
}

// checkCell checks that a cell says what it has to, and only that.
func checkCell(t *testing.T, where string, q Request, m Meaning, c Cell) {
	t.Helper()
	switch {
	case c.Never != "" && (len(c.Answers) > 0 || c.Class != nil || c.Hint != "" || len(c.Then) > 0):
		t.Errorf("%s: it never occurs, and yet it says something", where)
	case c.Never != "" && len(c.Never) < 15:
		t.Errorf("%s: %q is no reason", where, c.Never)
	case c.Never == "" && len(c.Answers) == 0:
		t.Errorf("%s: an empty cell", where)
	case c.Class != nil && c.Why == "":
		t.Errorf("%s: another class than its row's, without a reason", where)
	case c.Class != nil && *c.Class == q.class(m):
		t.Errorf("%s: the class is its row's anyway", where)
	}
}

// Design.md section 6: each class has its row, and each service gives each class
// that it can.
func TestEveryClassOccursAtEveryService(t *testing.T) {
	for _, s := range Services() {
		seen := map[cas.Class]bool{}
		for _, m := range Meanings {
			for _, q := range Requests(s) {
				if c := rows(s)[m.Name][q.Name]; c.Never == "" {
					seen[q.ClassOf(m, c)] = true
				}
			}
		}
		for _, class := range append(cas.Classes(), "") {
			// A Lease always says something, and every API server has conditions.
			impossible := s == K8s && (class == cas.Corrupt || class == cas.Unsupported)
			if seen[class] == impossible {
				t.Errorf("%s: class %q occurs: %v", s, class, seen[class])
			}
		}
	}
}

func TestARequestThatTheServiceWouldReadInAnotherWayIsNoticed(t *testing.T) {
	// The requests of the columns are read by the clients' own tests; these are
	// what a client must never send.
	for name, tt := range strange {
		t.Run(name, func(t *testing.T) {
			if s, err := tt.service.Understand(tt.request); err == nil {
				t.Errorf("read as %q", s)
			}
		})
	}
}
