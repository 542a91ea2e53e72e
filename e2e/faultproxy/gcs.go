package faultproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// jsonAPI is the JSON interface of Google Cloud Storage, of which uploads have paths
// of their own.
type jsonAPI struct{}

func (jsonAPI) understand(r *http.Request, body []byte) (Request, []byte) {
	q := Request{Method: r.Method, Op: Other}
	path, upload := strings.CutPrefix(r.URL.EscapedPath(), "/upload")
	path, ok := strings.CutPrefix(path, "/storage/v1/b/")
	if !ok {
		return q, body
	}
	_, path, _ = strings.Cut(path, "/") // the bucket
	query := r.URL.Query()
	if upload {
		name, data := multipartUpload(r.Header.Get("Content-Type"), body)
		if q.Key = query.Get("name"); q.Key == "" {
			q.Key = name
		}
		q.Op = Put
		switch generation := query.Get("ifGenerationMatch"); generation {
		case "":
		case "0":
			q.Op, q.Condition = Create, Absent
		default:
			q.Op, q.Condition = Replace, generation
		}
		return q, data
	}
	key, named := strings.CutPrefix(path, "o/")
	if named {
		q.Key, _ = url.PathUnescape(key)
	}
	switch {
	case named && r.Method == http.MethodGet && query.Get("alt") == "media":
		q.Op = Load
	case named && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		q.Op = Stat
	case named && r.Method == http.MethodDelete:
		q.Op, q.Condition = Delete, query.Get("ifGenerationMatch")
	case path == "o" && r.Method == http.MethodGet:
		q.Op = List
	}
	return q, body
}

// multipartUpload splits an upload into the object's name and its data; another
// kind of upload is all data.
func multipartUpload(contentType string, body []byte) (name string, data []byte) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil || kind != "multipart/related" {
		return "", body
	}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	var all [][]byte
	for {
		part, err := parts.NextRawPart()
		if err != nil {
			break
		}
		content, err := io.ReadAll(part)
		if err != nil {
			break
		}
		all = append(all, content)
	}
	if len(all) != 2 {
		return "", body
	}
	var about struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(all[0], &about)
	return about.Name, all[1]
}

func (jsonAPI) read(op Op, a answer) (code, version string) {
	if a.status >= 300 {
		var e struct {
			Error struct {
				Errors []struct {
					Reason string `json:"reason"`
				} `json:"errors"`
			} `json:"error"`
		}
		if json.Unmarshal(a.body, &e) == nil && len(e.Error.Errors) > 0 {
			code = e.Error.Errors[0].Reason
		}
	}
	switch {
	case a.status < 300 && op == Load:
		version = a.header.Get("X-Goog-Generation")
	case a.status < 300 && op == Delete:
		version = Absent
	case a.status < 300:
		var object struct {
			Generation string `json:"generation"`
		}
		_ = json.Unmarshal(a.body, &object)
		version = object.Generation
	case a.status == http.StatusNotFound && op == Load:
		version = Absent
	}
	return code, version
}

func (jsonAPI) refuse(status int, key string) answer {
	reason, message := "backendError", "Backend Error"
	switch status {
	case http.StatusTooManyRequests:
		reason = "rateLimitExceeded"
		message = fmt.Sprintf("The object %s exceeded the rate limit for object mutation operations (create, update, and delete).", key)
	case http.StatusForbidden:
		reason, message = "forbidden", "The caller does not have permission."
	}
	body, _ := json.Marshal(map[string]any{"error": map[string]any{
		"code": status, "message": message, "errors": []any{map[string]any{"domain": "global", "reason": reason, "message": message}},
	}})
	return answer{status: status, header: http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, body: body}
}
