package k8slease_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/testservers"
)

// documented returns the YAML block of docs/k8s-lease.md with the Role.
func documented(t *testing.T) []map[string]any {
	t.Helper()
	text, err := os.ReadFile("../../docs/k8s-lease.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		if !strings.Contains(block, "kind: Role\n") {
			continue
		}
		var out []map[string]any
		in := yaml.NewDecoder(strings.NewReader(block))
		for {
			var o map[string]any
			if err := in.Decode(&o); errors.Is(err, io.EOF) {
				return out
			} else if err != nil {
				t.Fatal(err)
			}
			out = append(out, o)
		}
	}
	t.Fatal("docs/k8s-lease.md has no Role")
	return nil
}

func TestExactlyTheDocumentedPermissionsAreNeeded(t *testing.T) {
	c := clusterIn(t, testservers.KubeNamespace)
	const (
		leader = "sf2loki-leader"
		rbac   = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + testservers.KubeNamespace
	)
	s := c.open(t, leader, c.AccountToken)
	_, err := s.Read(t.Context())
	if e := isClass(t, err, cas.Denied); !strings.Contains(e.Hint, "allow get on leases.coordination.k8s.io sf2loki-leader in namespace sf2loki") {
		t.Errorf("hint %q", e.Hint)
	}
	_, err = s.Create(t.Context(), record("w1"))
	if e := isClass(t, err, cas.Denied); !strings.Contains(e.Hint, "allow create on") {
		t.Errorf("hint %q", e.Hint)
	}

	var role map[string]any
	for _, o := range documented(t) {
		plural := map[string]string{"ServiceAccount": namespaces + "/" + c.namespace + "/serviceaccounts", "Role": rbac + "/roles", "RoleBinding": rbac + "/rolebindings"}[o["kind"].(string)]
		if o["kind"] == "Role" {
			role = o
		}
		body, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		c.Must(t, http.MethodPost, plural, "application/json", string(body))
	}
	// The server learns of a new Role a moment later.
	until := func(what string, done func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !done(); {
			if time.Now().After(end) {
				t.Fatalf("%s: not within 20 s", what)
			}
		}
	}
	until("the Role allows to read", func() bool {
		_, err := s.Read(t.Context())
		return cas.ClassOf(err) == cas.NotFound
	})
	var v cas.Version
	until("the Role allows to create", func() bool {
		v, err = s.Create(t.Context(), record("w1"))
		return cas.ClassOf(err) != cas.Denied
	})
	if err != nil {
		t.Fatal(err)
	}
	if v, err = s.Replace(t.Context(), record("w2"), v); err != nil {
		t.Fatal(err)
	}
	// Requests need nothing more.
	requests := s.Requests()
	request, err := requests.Create(t.Context(), []byte(holdA))
	if err != nil {
		t.Fatal(err)
	}
	if request, err = requests.Replace(t.Context(), []byte(holdB), request); err != nil {
		t.Fatal(err)
	}
	// Nothing else is allowed: no other lease, no list, no delete, no patch.
	_, err = c.open(t, "another", c.AccountToken).Read(t.Context())
	isClass(t, err, cas.Denied)
	for _, r := range [][3]string{{http.MethodGet, "", ""}, {http.MethodDelete, "/" + leader, ""}, {http.MethodPatch, "/" + leader, "{}"}} {
		if code, _ := c.Send(t, c.AccountToken, r[0], c.leases()+r[1], asPatch, r[2]); code != http.StatusForbidden {
			t.Errorf("%s of leases%s: %d, want 403", r[0], r[1], code)
		}
	}

	// Each verb is needed.
	set := func(named, all []string) {
		t.Helper()
		rules := role["rules"].([]any)
		rules[0].(map[string]any)["verbs"], rules[1].(map[string]any)["verbs"] = named, all
		body, err := json.Marshal(role)
		if err != nil {
			t.Fatal(err)
		}
		c.Must(t, http.MethodPut, rbac+"/roles/"+leader, "application/json", string(body))
	}
	write := 2
	replace := func() error {
		write++
		next, err := s.Replace(t.Context(), record(fmt.Sprint("w", write)), v)
		if err == nil {
			v = next
		}
		return err
	}
	set([]string{"get"}, []string{"create"})
	until("without update a replace is denied", func() bool { return cas.ClassOf(replace()) == cas.Denied })
	if e := isClass(t, replace(), cas.Denied); !strings.Contains(e.Hint, "get and update") || !strings.Contains(e.Error(), `cannot update resource "leases"`) {
		t.Errorf("%v", e)
	}
	if _, err := s.Read(t.Context()); err != nil {
		t.Errorf("without update a read: %v", err)
	}
	_, err = requests.Replace(t.Context(), []byte(holdA), request)
	if e := isClass(t, err, cas.Denied); !strings.Contains(e.Hint, "get and update") {
		t.Errorf("%v", e)
	}
	if got, err := requests.Load(t.Context()); err != nil || string(got.Data) != holdB {
		t.Errorf("without update a load of the request: %q, %v", got.Data, err)
	}
	set([]string{"update"}, []string{"create"})
	until("without get a read is denied", func() bool { _, err := s.Read(t.Context()); return cas.ClassOf(err) == cas.Denied })
	isClass(t, replace(), cas.Denied)
	set([]string{"get", "update"}, []string{"get"})
	until("without create a create is denied", func() bool {
		_, err := s.Create(t.Context(), record("w9"))
		return cas.ClassOf(err) == cas.Denied
	})
	until("the others still work", func() bool { return replace() == nil })
}

func TestAMissingNamespaceAndAWrongTokenSayWhatToDo(t *testing.T) {
	c := newCluster(t)
	nowhere := cluster{c.Kube, "nowhere"}
	_, err := nowhere.open(t, "leader", c.AdminToken).Read(t.Context())
	isClass(t, err, cas.NotFound) // the server does not look for the namespace of a read
	_, err = nowhere.open(t, "leader", c.AdminToken).Create(t.Context(), record("w1"))
	if e := isClass(t, err, cas.NoBucket); !strings.Contains(e.Hint, "create namespace nowhere") {
		t.Errorf("%v", e)
	}
	_, err = c.open(t, "leader", "hunter2").Read(t.Context())
	if e := isClass(t, err, cas.Denied); e.Status != http.StatusUnauthorized || !strings.Contains(e.Hint, "token") || strings.Contains(e.Error(), "hunter2") {
		t.Errorf("%v", e)
	}
	// Without its controller the namespace stays on the way out.
	c.Must(t, http.MethodDelete, namespaces+"/"+c.namespace, "", "")
	var e *cas.Error
	for end := time.Now().Add(20 * time.Second); ; {
		_, err = c.open(t, fmt.Sprint("l-", namespaceCount.Add(1)), c.AdminToken).Create(t.Context(), record("w1"))
		if err != nil {
			e = isClass(t, err, cas.NoBucket)
			break
		}
		if time.Now().After(end) {
			t.Fatal("a Lease can be created in a namespace that is being deleted")
		}
	}
	if !strings.Contains(e.Hint, "being deleted") {
		t.Errorf("%v", e)
	}
}
