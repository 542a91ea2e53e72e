package answers

import (
	"fmt"
	"strings"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/internal/wiretest"
)

// The ETags of what is there and of what is written.
const (
	ETag     = `"9b2cf535f27731c974343645a3985328"`
	nextETag = `"5d41402abc4b2a76b9719d911017c592"`
)

var s3Requests = []Request{
	{Service: S3, Name: Load, Op: Load, Sends: "load", class: byOp(Load)},
	{Service: S3, Name: Create, Op: Create, Sends: "create if absent", class: byOp(Create)},
	{Service: S3, Name: Replace, Op: Replace, Sends: "replace if " + ETag, class: byOp(Replace)},
}

// S3Error is an error document of S3, which sends them in chunks.
func S3Error(status int, code string, header ...string) wiretest.Answer {
	return s3Error(status, code, header...).Chunked()
}

func s3Error(status int, code string, header ...string) wiretest.Answer {
	body := fmt.Sprintf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>about %s</Message><RequestId>4442587FB7D0A2F9</RequestId><HostId>aG9zdA==</HostId></Error>", code, code)
	return wiretest.Respond(status, body, append([]string{"Content-Type: application/xml", "x-amz-request-id: 4442587FB7D0A2F9", "Server: AmazonS3"}, header...)...)
}

// Bare is an answer with nothing but a status.
func Bare(status int) wiretest.Answer { return wiretest.Respond(status, "") }

// The words of something that is not the store.
var (
	HTML404    = wiretest.Respond(404, "<html><body>default backend - 404</body></html>", "Content-Type: text/html")
	text404    = wiretest.Respond(404, "404 page not found\n", "Content-Type: text/plain")
	badGateway = wiretest.Respond(502, "<html><body>502 Bad Gateway</body></html>", "Content-Type: text/html")
	proxy504   = wiretest.Respond(504, "<html><body>504 Gateway Time-out</body></html>", "Content-Type: text/html")
	proxy408   = wiretest.Respond(408, "<html><body>408 Request Time-out</body></html>", "Content-Type: text/html", "Connection: close")
	loginPage  = wiretest.Respond(200, "<html><body>please log in</body></html>", "Content-Type: text/html")
)

// s3Object is the object as S3 sends it.
func s3Object(etag, body string) wiretest.Answer {
	return wiretest.Respond(200, body, "ETag: "+etag, "Content-Type: application/json", "Accept-Ranges: bytes", "Server: AmazonS3")
}

func s3Stored(etag string) wiretest.Answer {
	return wiretest.Respond(200, "", "ETag: "+etag, "Server: AmazonS3")
}

func s3Rows() map[string]row {
	each := func(a ...wiretest.Answer) row { return all(S3, says(a...)) }
	found, stored := s3Object(ETag, there), s3Stored(nextETag)
	reads := func(load Cell, otherwise string) row {
		return all(S3, never(otherwise)).but(load, Load)
	}
	const noBody = "the answer to a write carries no document"
	return map[string]row{
		Success:   each(stored, wiretest.Respond(200, "OK", "ETag: "+nextETag)).but(says(found, found.Chunked()), Load),
		NoVersion: each(Bare(200), wiretest.Respond(200, "", "ETag: ")).but(says(wiretest.Respond(200, there), wiretest.Respond(200, there, "ETag: ")), Load),

		"a success with nothing in it":   each(Bare(200), Bare(204)),
		"a success of something else":    each(loginPage, loginPage.Chunked()),
		"accepted, not done":             all(S3, never("S3 answers 202 only when an archived object is restored")),
		NoKey:                            each(S3Error(404, "NoSuchKey"), s3Error(404, "NoSuchKey", "x-amz-delete-marker: true")),
		NoBucket:                         all(S3, says(S3Error(404, "NoSuchBucket"), s3Error(404, "NoSuchBucket"), S3Error(404, "NoSuchAccessPoint")).hint("create the bucket")),
		"not found, without saying what": all(S3, never("S3 names what is missing in a code; a 404 without one is not S3's")),
		"a 404 that is not the store's":  all(S3, says(HTML404, text404, Bare(404), S3Error(404, "NoSuchThing")).hint("endpoint_url")),
		"half of a 404":                  each(s3Error(404, "NoSuchKey").Cut(60), S3Error(404, "NoSuchKey").Cut(60), s3Error(404, "NoSuchKey").Cut(60).ByReset()),

		ConditionFalse: each(S3Error(412, "PreconditionFailed"), s3Error(412, "PreconditionFailed"), Bare(412)),
		"the condition is false, with status 200": each(S3Error(200, "PreconditionFailed")),
		"the object exists, with status 304":      each(Bare(304)).but(never("304 is an older MinIO's answer to If-None-Match alone"), Replace),
		"half of a conflict":                      each(S3Error(412, "PreconditionFailed").Cut(60)),
		Elsewhere:                                 all(S3, never("an ETag changes with the content alone, and nothing else of an object is looked at")),

		GaveUp:  each(S3Error(409, "ConditionalRequestConflict"), S3Error(409, "OperationAborted"), Bare(409)),
		TooMany: each(S3Error(429, "SlowDown"), S3Error(429, "TooManyRequests"), Bare(429)),

		InternalError:                           each(S3Error(500, "InternalError"), S3Error(500, "SomethingNew"), Bare(500)),
		"an internal error with status 200":     each(S3Error(200, "InternalError")),
		"a bad gateway":                         each(badGateway),
		Unavailable:                             each(S3Error(503, "SlowDown"), S3Error(503, "ServiceUnavailable"), Bare(503)),
		"a gateway's timeout":                   each(proxy504),
		"the request came too slowly":           each(S3Error(400, "RequestTimeout", "Connection: close"), proxy408),
		ResetBefore:                             each(wiretest.ResetAtOnce()),
		ResetAfter:                              each(wiretest.ResetAfterRequest()),
		"half of the headers":                   each(stored.CutHead(30)).but(says(found.CutHead(30)), Load),
		"half of the body":                      each(s3Error(500, "InternalError").Cut(60)).but(says(found.Cut(60)), Load),
		"half of the body, then a reset":        each(s3Error(500, "InternalError").Cut(60).ByReset()).but(says(found.Cut(60).ByReset()), Load),
		"a chunked body without its end":        each(loginPage.Chunked().Cut(30)).but(says(found.Chunked().Cut(len(there)+7)), Load),
		"a body that does not fit its checksum": all(S3, never("no checksum is asked for: many compatible stores do not have one")),
		"garbage instead of a document":         each(wiretest.Respond(400, `{"error":"no"}`), wiretest.Respond(200, "<Result", "ETag: "+nextETag)).but(says(wiretest.Respond(400, `{"error":"no"}`), wiretest.Respond(500, "<Error><Code>")), Load),
		"a refusal that nobody knows":           each(S3Error(400, "SomethingNew"), S3Error(405, "MethodNotAllowed"), Bare(418)),
		NoAnswer:                                each(wiretest.Hang()),
		Late:                                    each(stored.After(late)).but(says(found.After(late)), Load),

		"an object that is no record": reads(says(s3Object(ETag, "hello"), s3Object(ETag, ""), s3Object(ETag, "\xff\xfe{}"), s3Object(ETag, "null")), noBody),
		"an epoch out of range":       reads(says(s3Object(ETag, `{"epoch":9007199254740992}`), s3Object(ETag, `{"epoch":-1}`)), noBody),
		"an object too large":         reads(says(s3Object(ETag, strings.Repeat("x", cas.MaxSize+1))).hint("not ours"), noBody),

		"not authenticated": all(S3, says(Bare(401), S3Error(401, "Unauthorized")).hint("s3:")),
		NotAllowed:          all(S3, says(S3Error(403, "AccessDenied"), Bare(403)).hint("allow s3:PutObject")).but(says(S3Error(403, "AccessDenied"), Bare(403)).hint("s3:ListBucket"), Load),
		"credentials that have expired or are wrong": all(S3, says(S3Error(403, "RequestTimeTooSkewed"), S3Error(403, "InvalidAccessKeyId"), S3Error(403, "SignatureDoesNotMatch"),
			S3Error(400, "ExpiredToken"), S3Error(400, "InvalidToken"))),
		"a key for encryption that refuses": all(S3, says(S3Error(400, "KMS.DisabledException"), S3Error(400, "KMS.KMSInvalidStateException")).hint("kms:")),
		"a policy that forbids this write":  all(S3, says(S3Error(403, "AccessDenied")).hint("Deny in the bucket policy")).but(never("a policy that forbids a read is a refusal like any other"), Load),

		"a redirect": all(S3, says(S3Error(301, "PermanentRedirect", "x-amz-bucket-region: eu-west-1"), S3Error(307, "TemporaryRedirect", "Location: http://eu-west-1.example/b/k?sig=hunter2"),
			wiretest.Respond(308, "", "Location: https://eu-west-1.example/"), Bare(301)).hint("region")),
		"another region, said with a 400": all(S3, says(S3Error(400, "AuthorizationHeaderMalformed"), S3Error(400, "IllegalLocationConstraintException")).hint("region")),
		"an impossible name":              all(S3, says(S3Error(400, "InvalidBucketName")).hint("correct bucket")),

		"not implemented":                  all(S3, says(S3Error(501, "NotImplemented"), Bare(501)).hint("conditional writes")),
		"not implemented, said with a 400": all(S3, says(S3Error(400, "NotImplemented")).hint("conditional writes")),
	}
}

// understandS3 reads a request of S3's protocol, path style.
func understandS3(r wiretest.Request) (Sent, error) {
	if r.Path() != "/"+Bucket+"/"+Key {
		return Sent{}, fmt.Errorf("path %s", r.Path())
	}
	var conditions []string
	for _, h := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		for _, v := range r.Header.Values(h) {
			conditions = append(conditions, h+": "+v)
		}
	}
	switch {
	case r.Method == "GET" && len(conditions) == 0:
		return Sent{Op: Load}, nil
	case r.Method == "PUT" && len(conditions) == 1 && conditions[0] == "If-None-Match: *":
		return Sent{Op: Create, Condition: Absent, Doc: r.Body}, nil
	case r.Method == "PUT" && len(conditions) == 1 && strings.HasPrefix(conditions[0], "If-Match: "):
		return Sent{Op: Replace, Condition: strings.TrimPrefix(conditions[0], "If-Match: "), Doc: r.Body}, nil
	}
	return Sent{}, fmt.Errorf("%s with the conditions %q", r.Method, conditions)
}
