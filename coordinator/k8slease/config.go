package k8slease

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// defaultTimeout bounds a call whose context has no deadline.
const defaultTimeout = 10 * time.Second

// Config says which Lease, and on which cluster.
type Config struct {
	// Namespace of the Lease. Required. It has to exist.
	Namespace string
	// Name of the Lease. Required. It need not exist.
	Name string
	// Kubeconfig is the path of a kubeconfig file; its current context is used.
	// Default: the ServiceAccount of the pod this process runs in.
	Kubeconfig string
	// Timeout bounds each call in addition to its context. Default 10 s; the
	// election's own contexts are shorter.
	Timeout time.Duration
}

// Open returns the store of one Lease. It sends no request: an unreachable API
// server, a missing namespace or permission are errors of the first call. An
// error of Open is one of the configuration. The caller closes the store.
func Open(_ context.Context, cfg Config) (*Store, error) {
	fail := func(err error) (*Store, error) {
		return nil, fmt.Errorf("open lease k8s://%s/%s: %w", cfg.Namespace, cfg.Name, err)
	}
	if problems := validation.IsDNS1123Label(cfg.Namespace); len(problems) > 0 {
		return fail(fmt.Errorf("namespace: %s", strings.Join(problems, "; ")))
	}
	if problems := validation.IsDNS1123Subdomain(cfg.Name); len(problems) > 0 {
		return fail(fmt.Errorf("name: %s", strings.Join(problems, "; ")))
	}
	if cfg.Timeout < 0 {
		return fail(fmt.Errorf("timeout: %v is negative", cfg.Timeout))
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	cluster, err := clusterConfig(cfg.Kubeconfig)
	if err != nil {
		return fail(err)
	}
	client, err := rest.HTTPClientFor(tuned(cluster))
	if err != nil {
		return fail(err)
	}
	// A copy: the library may hand out http.DefaultClient.
	hc := &http.Client{
		Transport: dated{client.Transport},
		// A redirect is an answer. A request that carries a token belongs to one
		// host, and a second request hides what became of the first.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	api, err := rest.RESTClientForConfigAndClient(cluster, hc)
	if err != nil {
		return fail(err)
	}
	return &Store{namespace: cfg.Namespace, name: cfg.Name, timeout: cfg.Timeout, api: api, http: hc}, nil
}

// clusterConfig finds the cluster: a file, or the pod's surroundings.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		cluster, err := rest.InClusterConfig()
		switch {
		case errors.Is(err, rest.ErrNotInCluster):
			return nil, errors.New("this process does not run in a Kubernetes pod; name a kubeconfig file (coordinate.k8s_lease.kubeconfig), or run it in one")
		case err != nil:
			return nil, fmt.Errorf("ServiceAccount of the pod: %w; is automountServiceAccountToken off?", err)
		}
		return cluster, nil
	}
	// Explicit: neither KUBECONFIG nor ~/.kube/config is looked at.
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	cluster, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return cluster, nil
}

// tuned makes a client configuration fit for a lease; it returns its argument.
func tuned(c *rest.Config) *rest.Config {
	scheme := runtime.NewScheme()
	_ = coordinationv1.AddToScheme(scheme) // cannot fail on an empty scheme
	gv := coordinationv1.SchemeGroupVersion
	c.GroupVersion, c.APIPath = &gv, "/apis"
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.UserAgent = "sf2loki-ha"

	// 1. No rate limiter of the client's: a renewal never waits for one. The
	// election sends about one request a second.
	c.QPS, c.RateLimiter = -1, nil
	// 2. Deadlines come with each context, none is added to the URL.
	c.Timeout = 0
	// 3. HTTP/1.1 only, see the package comment.
	c.NextProtos = []string{"http/1.1"}
	// 4. A dialer of its own: dead peers are noticed, and the transport is not
	// shared with other clients in this process.
	c.Dial = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	// 5. A cut body is noticed by its length.
	c.DisableCompression = true
	c.WarningHandler, c.WarningHandlerWithContext = rest.NoWarnings{}, nil
	return c
}
