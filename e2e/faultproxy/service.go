package faultproxy

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Service is the language of a store.
type Service interface {
	// understand says what a request wants, and which part of its body is the
	// object's new data.
	understand(r *http.Request, body []byte) (Request, []byte)
	// read says what an answer to it says: an error code, and a version.
	read(op Op, a answer) (code, version string)
	// refuse is an answer without the store.
	refuse(status int, key string) answer
}

// answer is a whole answer.
type answer struct {
	status int
	header http.Header
	body   []byte
	// chunked: its length was not said in advance.
	chunked bool
}

// The services.
var (
	// S3 with the bucket in the path.
	S3 Service = etags{code: s3Code, bucket: true, error: s3Error}
	// GCS is the JSON interface of Google Cloud Storage.
	GCS Service = jsonAPI{}
	// Plain is any server of objects with ETags: the path is the key.
	Plain Service = etags{code: func([]byte) string { return "" }, error: func(status int, _ string) (string, string) {
		return "text/plain; charset=utf-8", http.StatusText(status) + "\n"
	}}
)

// etags is a service whose versions are ETags.
type etags struct {
	bucket bool // the first part of the path
	code   func(body []byte) string
	error  func(status int, key string) (contentType, body string)
}

func (s etags) understand(r *http.Request, body []byte) (Request, []byte) {
	key := strings.TrimPrefix(r.URL.Path, "/")
	if s.bucket {
		_, key, _ = strings.Cut(key, "/")
	}
	q := Request{Method: r.Method, Key: key, Op: Other}
	switch {
	case r.Method == http.MethodGet && key == "":
		q.Op = List
	case r.Method == http.MethodGet:
		q.Op = Load
	case r.Method == http.MethodHead && key != "":
		q.Op = Stat
	case r.Method == http.MethodDelete && key != "":
		q.Op = Delete
	case r.Method != http.MethodPut || key == "":
	case r.Header.Get("If-None-Match") == "*":
		q.Op, q.Condition = Create, Absent
	case r.Header.Get("If-Match") != "":
		q.Op, q.Condition = Replace, unquote(r.Header.Get("If-Match"))
	default:
		q.Op = Put
	}
	return q, body
}

func unquote(etag string) string { return strings.Trim(strings.TrimPrefix(etag, "W/"), `"`) }

func (s etags) read(op Op, a answer) (code, version string) {
	if a.status >= 300 {
		code = s.code(a.body)
	}
	switch {
	case a.status < 300 && op == Delete:
		version = Absent
	case a.status < 300:
		version = unquote(a.header.Get("ETag"))
	case a.status == http.StatusNotFound && op == Load && (code == "" || code == "NoSuchKey"):
		version = Absent
	}
	return code, version
}

func (s etags) refuse(status int, key string) answer {
	contentType, body := s.error(status, key)
	return answer{status: status, header: http.Header{"Content-Type": {contentType}}, body: []byte(body)}
}

func s3Code(body []byte) string {
	var e struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
	}
	_ = xml.Unmarshal(body, &e)
	return e.Code
}

func s3Error(status int, key string) (contentType, body string) {
	code, message := "InternalError", "We encountered an internal error, please try again."
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		code, message = "SlowDown", "Please reduce your request rate."
	case http.StatusForbidden:
		code, message = "AccessDenied", "Access Denied"
	case http.StatusConflict:
		code, message = "ConditionalRequestConflict", "A conflicting operation is in progress on this resource."
	}
	var resource strings.Builder
	_ = xml.EscapeText(&resource, []byte((&url.URL{Path: "/" + key}).EscapedPath()))
	return "application/xml", fmt.Sprintf("%s<Error><Code>%s</Code><Message>%s</Message><Resource>%s</Resource><RequestId>FAULTPROXY</RequestId></Error>",
		xml.Header, code, message, resource.String())
}
