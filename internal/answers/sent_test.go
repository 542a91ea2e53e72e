package answers

import (
	"net/http"
	"net/textproto"

	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// strange are requests that no client of ours may send.
var strange = map[string]struct {
	service Service
	request wiretest.Request
}{
	"s3, a write without a condition":      {S3, request("PUT", "/bkt/"+Key, "")},
	"s3, a write with two conditions":      {S3, request("PUT", "/bkt/"+Key, "", "If-Match", ETag, "If-None-Match", "*")},
	"s3, a create that is none":            {S3, request("PUT", "/bkt/"+Key, "", "If-None-Match", ETag)},
	"s3, a read with a condition":          {S3, request("GET", "/bkt/"+Key, "", "If-None-Match", ETag)},
	"s3, another key":                      {S3, request("GET", "/bkt/other", "")},
	"s3, a delete":                         {S3, request("DELETE", "/bkt/"+Key, "")},
	"gcs, an upload without a condition":   {GCS, request("POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=sf2loki/leader.lease", "")},
	"gcs, a condition on metadata as well": {GCS, request("POST", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=sf2loki/leader.lease&ifGenerationMatch=1&ifMetagenerationMatch=1", "")},
	"gcs, a resumable upload":              {GCS, request("POST", "/upload/storage/v1/b/bkt/o?uploadType=resumable&name=sf2loki/leader.lease&ifGenerationMatch=1", "")},
	"gcs, the rest of a download":          {GCS, request("GET", "/storage/v1/b/bkt/o/sf2loki%2Fleader.lease?alt=media", "", "Range", "bytes=5-")},
	"gcs, a listing of everything":         {GCS, request("GET", "/storage/v1/b/bkt/o", "")},
	"k8s, an update without a version":     {K8s, request("PUT", KubeLeases+"/leader", `{"metadata":{"name":"leader","uid":"uid-1"}}`)},
	"k8s, an update that could create":     {K8s, request("PUT", KubeLeases+"/leader", `{"metadata":{"name":"leader","resourceVersion":"1"}}`)},
	"k8s, a create with a version":         {K8s, request("POST", KubeLeases, `{"metadata":{"name":"leader","resourceVersion":"1"}}`)},
	"k8s, a watch":                         {K8s, request("GET", KubeLeases+"/leader?watch=1", "")},
	"k8s, a patch":                         {K8s, request("PATCH", KubeLeases+"/leader", `{}`)},
}

func request(method, target, body string, header ...string) wiretest.Request {
	r := wiretest.Request{Method: method, Target: target, Body: []byte(body), Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(textproto.CanonicalMIMEHeaderKey(header[i]), header[i+1])
	}
	return r
}
