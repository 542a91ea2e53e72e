package testservers

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// kubeTimeout is generous: on a busy machine an API server needs half a minute.
const kubeTimeout = 2 * time.Minute

// The namespace of the tests and the ServiceAccount in it, as the Role in
// docs/k8s-lease.md names them. Neither exists until a test creates it: a token
// of the account is accepted all the same, and may do nothing.
const (
	KubeNamespace      = "sf2loki"
	KubeServiceAccount = "sf2loki-ha"
)

// Kube is a running kube-apiserver on an etcd of its own. There is no scheduler,
// no controller and no node: nothing collects garbage or creates ServiceAccounts.
type Kube struct {
	// URL is the base URL.
	URL string
	// Etcd is the base URL of its etcd.
	Etcd string
	// AdminToken may do everything.
	AdminToken string
	// AccountToken belongs to KubeServiceAccount and may do what RBAC allows it.
	AccountToken string
	// Client trusts the server's certificate. It has no credentials.
	Client *http.Client

	dir  string
	stop []func()
}

// StartKube starts etcd and kube-apiserver for one test.
func StartKube(t testing.TB) *Kube {
	t.Helper()
	etcd, apiserver := Bin(t, "etcd"), Bin(t, "kube-apiserver")
	k, err := runKube(t.TempDir(), etcd, apiserver)
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	t.Cleanup(k.close)
	return k
}

// Shared starts a server once for all tests of a package, which is then ended by
// End, to be called from TestMain. Use Get in tests.
type Shared struct{ kube *Kube }

// Get returns the server and starts it first if no test did. Tests that share a
// server must not run in parallel.
func (s *Shared) Get(t testing.TB) *Kube {
	t.Helper()
	if s.kube != nil {
		return s.kube
	}
	etcd, apiserver := Bin(t, "etcd"), Bin(t, "kube-apiserver")
	dir, err := os.MkdirTemp("", "kube-")
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	k, err := runKube(dir, etcd, apiserver)
	if err != nil {
		os.RemoveAll(dir)
		t.Fatalf("testservers: %v", err)
	}
	k.stop = append([]func(){func() { os.RemoveAll(dir) }}, k.stop...)
	s.kube = k
	return k
}

// End ends the server if there is one.
func (s *Shared) End() {
	if s.kube != nil {
		s.kube.close()
		s.kube = nil
	}
}

func (k *Kube) close() {
	if k.Client != nil {
		k.Client.CloseIdleConnections()
	}
	for i := len(k.stop) - 1; i >= 0; i-- {
		k.stop[i]()
	}
}

func runKube(dir, etcd, apiserver string) (_ *Kube, err error) {
	k := &Kube{dir: dir, AdminToken: "admin-of-a-test-server", AccountToken: "account-of-a-test-server"}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	k.Etcd, err = k.launch("http", "/readyz", func(port int) []string {
		return []string{etcd, "--data-dir", filepath.Join(dir, fmt.Sprintf("etcd-%d", port)), "--log-level", "error", "--unsafe-no-fsync",
			"--listen-client-urls", "http://" + loopback(port), "--advertise-client-urls", "http://" + loopback(port),
			"--listen-peer-urls", "http://127.0.0.1:0"}
	}, http.DefaultClient)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}

	key, err := signingKey(dir)
	if err != nil {
		return nil, err
	}
	tokens := filepath.Join(dir, "tokens.csv")
	account := fmt.Sprintf("system:serviceaccount:%s:%s", KubeNamespace, KubeServiceAccount)
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "%s,admin,1,system:masters\n%s,%s,2,system:serviceaccounts\n", k.AdminToken, k.AccountToken, account), 0o600); err != nil {
		return nil, err
	}
	// Ready is asked without trusting the certificate, which does not exist yet.
	anyone := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	certs := filepath.Join(dir, "certs")
	k.URL, err = k.launch("https", "/readyz", func(port int) []string {
		return []string{apiserver, "--etcd-servers", k.Etcd, "--cert-dir", certs,
			"--secure-port", fmt.Sprint(port), "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--endpoint-reconciler-type", "none",
			"--service-account-key-file", key, "--service-account-signing-key-file", key, "--service-account-issuer", "https://localhost",
			"--token-auth-file", tokens, "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24", "--v", "0"}
	}, anyone)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	pool := x509.NewCertPool()
	cert, err := os.ReadFile(k.caFile())
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(cert) {
		return nil, errors.New("the API server's certificate cannot be read")
	}
	k.Client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	return k, nil
}

// launch runs a server on a free port until k is closed and returns its URL.
func (k *Kube) launch(scheme, readyPath string, argv func(port int) []string, client *http.Client) (string, error) {
	var last error
	for range startTries {
		port, err := pickPort()
		if err != nil {
			return "", err
		}
		p, err := run(argv(port), nil)
		if err != nil {
			return "", err
		}
		url := scheme + "://" + loopback(port)
		if last = p.readyWith(client, url+readyPath, func(code int) bool { return code == http.StatusOK }, kubeTimeout); last == nil {
			k.stop = append(k.stop, p.stop)
			return url, nil
		}
		p.stop()
	}
	return "", last
}

func (k *Kube) caFile() string { return filepath.Join(k.dir, "certs", "apiserver.crt") }

// Kubeconfig writes a kubeconfig file for that token and returns its path.
func (k *Kube) Kubeconfig(t testing.TB, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: test, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: test}}]
`, k.URL, k.caFile(), token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatalf("testservers: %v", err)
	}
	return path
}

// signingKey makes the key that signs tokens of ServiceAccounts, which nobody
// asks for, but without which the server does not start.
func signingKey(dir string) (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sa.key")
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return path, os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}

// Must sends one request as the administrator, with a body in JSON or YAML, and
// fails the test unless the answer is a success. It returns the answer's body.
func (k *Kube) Must(t testing.TB, method, path, contentType, body string) []byte {
	t.Helper()
	code, answer := k.Send(t, k.AdminToken, method, path, contentType, body)
	if code < 200 || code > 299 {
		t.Fatalf("testservers: %s %s: %d: %s", method, path, code, answer)
	}
	return answer
}

// Send sends one request with that token.
func (k *Kube) Send(t testing.TB, token, method, path, contentType, body string) (code int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, k.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := k.Client.Do(req)
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("testservers: %v", err)
	}
	return resp.StatusCode, answer
}
