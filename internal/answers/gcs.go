package answers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// The generations of what is there and of what is written.
const (
	Generation     = "1764532800123456"
	nextGeneration = "1764532801123456"
)

// GCSNoObject and GCSNoBucket are the texts by which the service tells what is
// missing: the reason is the same.
const (
	GCSNoObject = "No such object: " + Bucket + "/" + Key
	GCSNoBucket = "The specified bucket does not exist."
)

// bareNotFound ends its connection: net/http sends a GET again by itself if the
// connection that it kept turns out to be dead, which would blur the count.
var bareNotFound = wiretest.Respond(404, "Not Found", "Content-Type: text/html; charset=UTF-8", "Connection: close")

// Listing is the request that settles a 404 that does not say what is missing.
const Listing = "listing of a load"

var gcsRequests = []Request{
	{Service: GCS, Name: Load, Op: Load, Sends: "load", class: byOp(Load)},
	{Service: GCS, Name: Listing, Op: Load, Before: []Exchange{{"load", bareNotFound}}, Sends: "list", class: byOp(Load)},
	{Service: GCS, Name: Create, Op: Create, Sends: "create if absent", class: byOp(Create)},
	{Service: GCS, Name: Replace, Op: Replace, Sends: "replace if " + Generation, class: byOp(Replace)},
}

// GCSError is an error of the JSON API.
func GCSError(status int, reason, message string) wiretest.Answer {
	body := fmt.Sprintf(`{"error":{"code":%d,"message":%q,"errors":[{"domain":"global","reason":%q,"message":%q}]}}`, status, message, reason, message)
	return wiretest.Respond(status, body, "Content-Type: application/json; charset=UTF-8")
}

// GCSText is an answer in plain text, as the service gives to downloads and
// others give to anything.
func GCSText(status int, body string) wiretest.Answer {
	return wiretest.Respond(status, body, "Content-Type: text/html; charset=UTF-8")
}

// gcsObject is a download.
func gcsObject(generation, body string) wiretest.Answer {
	return wiretest.Respond(200, body, "X-Goog-Generation: "+generation, "Content-Type: application/json", "Cache-Control: no-store")
}

// gcsStored is the answer to an upload.
func gcsStored(generation string) wiretest.Answer {
	return wiretest.Respond(200, `{"kind":"storage#object","name":"`+Key+`","bucket":"`+Bucket+`","generation":"`+generation+`","metageneration":"1"}`, "Content-Type: application/json; charset=UTF-8")
}

// GCSListing is a listing of these names.
func GCSListing(names ...string) wiretest.Answer {
	var items []string
	for _, n := range names {
		items = append(items, fmt.Sprintf(`{"name":%q}`, n))
	}
	return wiretest.Respond(200, `{"kind":"storage#objects","items":[`+strings.Join(items, ",")+`]}`, "Content-Type: application/json; charset=UTF-8")
}

func gcsRows() map[string]row {
	each := func(a ...wiretest.Answer) row { return all(GCS, says(a...)) }
	found, stored, empty := gcsObject(Generation, there), gcsStored(nextGeneration), GCSListing()
	reads := func(load Cell, otherwise string) row {
		return all(GCS, never(otherwise)).but(load, Load)
	}
	const noBody = "neither a listing nor the answer to an upload carries the document"
	metadata := `{"kind":"storage#object","name":"` + Key + `"}`
	return map[string]row{
		Success: each(stored).but(says(found, found.Chunked()), Load).
			but(says(empty, GCSListing(Key+".request")).is(cas.NotFound, "the bucket can be listed and does not show the object"), Listing),
		NoVersion: each(wiretest.Respond(200, metadata), gcsStored("0")).but(says(wiretest.Respond(200, there), gcsObject("0", there), gcsObject("", there)), Load).
			but(never("a listing has no version; it is known by its names"), Listing),

		"a success with nothing in it": each(Bare(200), Bare(204)),
		"a success of something else":  each(loginPage, wiretest.Respond(200, `[]`)).but(says(loginPage, wiretest.Respond(200, `[]`), GCSListing(Key)), Listing), // the last one contradicts the 404
		"accepted, not done":           all(GCS, never("the JSON API answers 202 to no request of ours")),
		NoKey:                          each(GCSError(404, "notFound", GCSNoObject), GCSText(404, GCSNoObject)).but(never("a listing of a name that does not exist is empty, not 404"), Listing),
		NoBucket:                       all(GCS, says(GCSError(404, "notFound", GCSNoBucket), GCSText(404, GCSNoBucket)).hint("create the bucket")),
		"not found, without saying what": all(GCS, says(bareNotFound, GCSError(404, "notFound", "Not Found")).hint("create the bucket")).
			but(says(bareNotFound, GCSError(404, "notFound", "Not Found")).then("list", empty), Load).
			but(says(GCSError(404, "notFound", "Not Found")).is(cas.NoBucket, "a listing can miss nothing but its bucket").hint("create the bucket"), Listing),
		"a 404 that is not the store's": all(GCS, says(HTML404, text404, Bare(404), GCSText(404, "<p><b>404.</b> <ins>That’s an error.</ins> The requested URL was not found on this server.</p>")).hint("endpoint_url")),
		"half of a 404":                 each(GCSError(404, "notFound", GCSNoObject).Cut(60)),

		ConditionFalse: each(GCSError(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold."), Bare(412)),
		"the condition is false, with status 200": all(GCS, never("seen of S3 alone")),
		"the object exists, with status 304":      all(GCS, never("304 answers ifGenerationNotMatch, which is never sent")),
		"half of a conflict":                      each(GCSError(412, "conditionNotMet", "At least one of the pre-conditions you specified did not hold.").Cut(40)),
		Elsewhere:                                 all(GCS, never("metadata has a number of its own; a generation changes with the content alone")),

		GaveUp: each(GCSError(409, "conflict", "The request conflicted with another one."), Bare(409)),
		TooMany: each(GCSError(429, "rateLimitExceeded", "The object exceeded the rate limit for object mutation operations."), GCSError(403, "userRateLimitExceeded", "slow down"),
			GCSError(403, "rateLimitExceeded", "slow down"), GCSError(503, "rateLimitExceeded", "slow down"), Bare(429)),

		InternalError:                       each(GCSError(500, "backendError", "We encountered an internal error. Please try again."), Bare(500)),
		"an internal error with status 200": all(GCS, never("seen of S3 alone")),
		"a bad gateway":                     each(badGateway, Bare(502)),
		Unavailable:                         each(GCSError(503, "backendError", "Backend Error"), Bare(503)),
		"a gateway's timeout":               each(proxy504, Bare(504)),
		"the request came too slowly":       each(proxy408, Bare(408)),
		ResetBefore:                         each(wiretest.ResetAtOnce()),
		ResetAfter:                          each(wiretest.ResetAfterRequest()),
		"half of the headers":               each(stored.CutHead(30)).but(says(found.CutHead(30)), Load).but(says(empty.CutHead(30)), Listing),
		"half of the body":                  each(stored.Cut(40)).but(says(found.Cut(60)), Load).but(says(empty.Cut(20)), Listing),
		"half of the body, then a reset":    each(stored.Cut(40).ByReset()).but(says(found.Cut(60).ByReset()), Load).but(says(empty.Cut(20).ByReset()), Listing),
		"a chunked body without its end": each(stored.Chunked().Cut(40)).but(says(found.Chunked().Cut(60), found.Chunked().Cut(len(there)+7)), Load).
			but(says(empty.Chunked().Cut(20)), Listing),
		"a body that does not fit its checksum": all(GCS, never("an upload carries its checksum; the service refuses it as damaged, a 400")).
			but(says(wiretest.Respond(200, there, "X-Goog-Generation: "+Generation, "X-Goog-Hash: crc32c=AAAAAA==")), Load),
		"garbage instead of a document": each(wiretest.Respond(200, "garbage"), wiretest.Respond(400, "<xml>")).
			but(says(wiretest.Respond(400, "<xml>"), wiretest.Respond(500, `{"error":`)), Load),
		"a refusal that nobody knows": each(GCSError(400, "somethingNew", "no"), Bare(418)),
		NoAnswer:                      each(wiretest.Hang()),
		Late:                          each(stored.After(late)).but(says(found.After(late)), Load).but(says(empty.After(late)), Listing),

		"an object that is no record": reads(says(gcsObject(Generation, "hello"), gcsObject(Generation, ""), gcsObject(Generation, "\xff\xfe{}"), gcsObject(Generation, "null")), noBody),
		"an epoch out of range":       reads(says(gcsObject(Generation, `{"epoch":9007199254740992}`), gcsObject(Generation, `{"epoch":-1}`)), noBody),
		"an object too large":         reads(says(gcsObject(Generation, strings.Repeat("x", cas.MaxSize+1))).hint("not ours"), noBody),

		"not authenticated": all(GCS, says(GCSError(401, "authError", "Invalid Credentials"), Bare(401)).hint("credentials")),
		NotAllowed: all(GCS, says(GCSError(403, "forbidden", "sa@p.iam.gserviceaccount.com does not have the permission."), Bare(403)).hint("storage.objects.create")).
			but(says(GCSError(403, "forbidden", "sa@p.iam.gserviceaccount.com does not have storage.objects.get access."), GCSText(403, "sa@p.iam.gserviceaccount.com does not have storage.objects.get access."), Bare(403)).hint("storage.objects.get"), Load).
			but(says(GCSError(403, "forbidden", "sa@p.iam.gserviceaccount.com does not have storage.objects.list access.")).hint("storage.objects.list"), Listing),
		"credentials that have expired or are wrong": all(GCS, says(GCSError(401, "authError", "Invalid Credentials")).hint("credentials")),
		"a key for encryption that refuses":          all(GCS, says(GCSError(403, "forbidden", "Permission denied on Cloud KMS key.")).hint("storage.objects.")).but(never("a listing needs no key"), Listing),
		"a policy that forbids this write": all(GCS, says(GCSError(403, "retentionPolicyNotMet", "Object is subject to bucket's retention policy."), GCSError(403, "objectUnderActiveHold", "Object is under active hold.")).hint("retention")).
			but(never("a retention policy forbids no read"), Load, Listing),

		"a redirect":                      all(GCS, says(wiretest.Respond(307, "", "Location: http://127.0.0.1:1/?sig=hunter2"), wiretest.Respond(308, "", "Location: http://127.0.0.1:1/"), Bare(301)).hint("redirects")),
		"another region, said with a 400": all(GCS, never("the endpoint is one for all regions")),
		"an impossible name":              all(GCS, says(GCSError(400, "invalid", "Invalid bucket name: 'x'")).hint("bucket")),

		"not implemented":                  all(GCS, says(GCSError(501, "notImplemented", "no"), Bare(501)).hint("conditional writes")),
		"not implemented, said with a 400": all(GCS, says(GCSError(400, "notImplemented", "no")).hint("conditional writes")),
	}
}

// understandGCS reads a request of the JSON API.
func understandGCS(r wiretest.Request) (Sent, error) {
	u, err := url.Parse(r.Target)
	if err != nil {
		return Sent{}, err
	}
	q := u.Query()
	for _, p := range []string{"ifGenerationNotMatch", "ifMetagenerationMatch", "ifMetagenerationNotMatch", "generation"} {
		if q.Has(p) {
			return Sent{}, fmt.Errorf("%s=%s", p, q.Get(p))
		}
	}
	for _, h := range []string{"If-Match", "If-None-Match", "Range"} {
		if r.Header.Get(h) != "" {
			return Sent{}, fmt.Errorf("%s: %s", h, r.Header.Get(h))
		}
	}
	condition := q["ifGenerationMatch"]
	objects := "/b/" + Bucket + "/o"
	switch {
	case r.Method == "GET" && len(condition) == 0 && r.Path() == "/storage/v1"+objects+"/"+url.PathEscape(Key) && q.Get("alt") == "media":
		return Sent{Op: Load}, nil
	case r.Method == "GET" && len(condition) == 0 && r.Path() == "/storage/v1"+objects && q.Get("prefix") == Key && q.Get("maxResults") == "1":
		return Sent{Op: "list"}, nil
	case r.Method == "POST" && len(condition) == 1 && r.Path() == "/upload/storage/v1"+objects && q.Get("uploadType") == "multipart" && q.Get("name") == Key:
		doc, err := uploaded(r)
		if err != nil {
			return Sent{}, err
		}
		if condition[0] == "0" {
			return Sent{Op: Create, Condition: Absent, Doc: doc}, nil
		}
		return Sent{Op: Replace, Condition: condition[0], Doc: doc}, nil
	}
	return Sent{}, fmt.Errorf("%s %s", r.Method, r.Target)
}

// uploaded is the document of a multipart upload, which has its attributes in
// front.
func uploaded(r wiretest.Request) ([]byte, error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/related" {
		return nil, fmt.Errorf("Content-Type %q: %w", r.Header.Get("Content-Type"), err)
	}
	parts := multipart.NewReader(strings.NewReader(string(r.Body)), params["boundary"])
	var both [2][]byte
	for i := range both {
		p, err := parts.NextPart()
		if err != nil {
			return nil, err
		}
		if both[i], err = io.ReadAll(p); err != nil {
			return nil, err
		}
	}
	var attrs struct{ Name, ContentType, CacheControl, Crc32c string }
	if err := json.Unmarshal(both[0], &attrs); err != nil {
		return nil, err
	}
	if attrs.Name != Key || attrs.ContentType != "application/json" || attrs.CacheControl != "no-store" || attrs.Crc32c == "" {
		return nil, errors.New("attributes: " + string(both[0]))
	}
	return both[1], nil
}
