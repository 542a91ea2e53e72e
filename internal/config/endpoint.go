package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// endpointProblem says what is wrong with an endpoint URL. It never shows the
// URL: what is wrong with it may be a credential. The text credentials says where
// those belong.
func endpointProblem(raw, credentials string) string {
	// Before parsing: a password with odd characters makes the URL invalid, and
	// is still a password.
	if strings.Contains(raw, "@") {
		return "has credentials in front of the @; remove them from the URL and give them as " + credentials
	}
	const form = "; write it as https://host or http://host:port"
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "is not a URL" + form
	case u.Scheme != "http" && u.Scheme != "https":
		return "does not begin with http:// or https://" + form
	case u.Hostname() == "":
		return "has no host" + form
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "has a query or a fragment, which no endpoint has; remove what follows the host and path"
	case !validPort(u.Port()):
		return "has no port between 1 and 65535" + form
	}
	return ""
}

func validPort(port string) bool {
	if port == "" {
		return true
	}
	_, err := netip.ParseAddrPort("127.0.0.1:" + port)
	return err == nil && strings.Trim(port, "0") != ""
}

// The two stores that an empty endpoint stands for.
const (
	serviceAWS = "aws"
	serviceGCS = "gcs"
)

// endpointIdentity reduces an endpoint to what decides whether two of them are
// one store. Where two spellings might be one, they are: refusing a strange
// pair costs an edit, accepting one object for two costs every checkpoint.
func endpointIdentity(raw, service string) string {
	if raw == "" {
		return service
	}
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw // STORAGE_EMULATOR_HOST is host:port
	}
	u, err := url.Parse(raw)
	if err != nil {
		return raw
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	// 1. The clouds: bucket names are global, so that regional, dual-stack,
	// FIPS and private addresses lead to the same bucket.
	switch {
	case within(host, "amazonaws.com"), within(host, "amazonaws.com.cn"), within(host, "api.aws"):
		return serviceAWS
	case within(host, "storage.googleapis.com"), host == "www.googleapis.com", host == "storage.cloud.google.com":
		return serviceGCS
	}
	// 2. Names of this machine.
	if addr, err := netip.ParseAddr(host); (err == nil && addr.Unmap().IsLoopback()) || within(host, "localhost") {
		host = "loopback"
	}
	// 3. The default port of either scheme is no port: one server usually has
	// both.
	port := u.Port()
	if (u.Scheme == "https" && port == "443") || (!strings.EqualFold(u.Scheme, "https") && port == "80") {
		port = ""
	}
	if port != "" {
		host = net.JoinHostPort(host, port)
	}
	return host + strings.TrimRight(u.EscapedPath(), "/")
}

func within(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
