package config

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxObjectKey is the longest object name on S3 and on Cloud Storage.
const maxObjectKey = 1024

// maxBucket is the longest bucket name anywhere (Cloud Storage, with dots).
const maxBucket = 222

// bucketProblem says what is wrong with a bucket's name. Stores differ in the
// details, so only what no store accepts is refused.
func bucketProblem(bucket string) string {
	if scheme, rest, ok := strings.Cut(bucket, "://"); ok {
		rest = hideUserinfo(rest)
		name, _, _ := strings.Cut(rest, "/")
		switch strings.ToLower(scheme) {
		case "s3", "gs", "gcs":
			return fmt.Sprintf("%s is a URL; give the name alone: %q", quote(bucket), name)
		}
		return "is a URL; give the bucket's name alone, and the server's address as endpoint_url"
	}
	if strings.HasPrefix(bucket, "arn:") {
		return fmt.Sprintf("%s is an ARN; give the bucket's name alone, because two ARNs can hide that lease and checkpoint are one object", quote(bucket))
	}
	if name, rest, ok := strings.Cut(bucket, "/"); ok {
		return fmt.Sprintf("%s has a slash; the bucket would be %s and the object's key begins with %s", quote(bucket), quote(name), quote(rest))
	}
	if len(bucket) > maxBucket {
		return fmt.Sprintf("has %d characters; no bucket name is longer than %d", len(bucket), maxBucket)
	}
	for _, r := range bucket {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.') {
			return fmt.Sprintf("%s has the character %q; bucket names have letters, digits, '-', '_' and '.'", quote(bucket), r)
		}
	}
	return ""
}

// objectKeyProblem says what is wrong with an object's key; longest is the
// number of bytes it may have.
func objectKeyProblem(key string, longest int) string {
	switch {
	case key == "":
		return "is empty; give the object a name, or leave the key out for the default"
	case strings.HasPrefix(key, "/"):
		// Some stores drop the slash and some keep it: one file would mean two
		// objects.
		return fmt.Sprintf("%s begins with a slash; write %s", quote(key), quote(strings.TrimLeft(key, "/")))
	case strings.HasSuffix(key, "/"):
		return fmt.Sprintf("%s ends with a slash, which names a folder; add the object's name", quote(key))
	case len(key) > longest:
		return fmt.Sprintf("has %d bytes; it can have at most %d", len(key), longest)
	case !utf8.ValidString(key):
		return "is not UTF-8"
	case strings.ContainsFunc(key, unicode.IsControl):
		return "holds a control character; remove it"
	case path.Clean(key) != key:
		return fmt.Sprintf("%s has empty, '.' or '..' parts, which clients resolve in different ways; write %s", quote(key), quote(strings.TrimLeft(path.Clean("/"+key), "/")))
	}
	return ""
}

// pathProblem says what is wrong with the path of a file that is written.
func pathProblem(p string) string {
	switch {
	case p == "":
		return "is empty; give the file a path, or leave the key out for the default"
	case strings.ContainsRune(p, 0):
		return "holds a zero byte, which no path can"
	case strings.HasSuffix(p, "/"), path.Base(p) == ".", path.Base(p) == "..":
		return fmt.Sprintf("%s names a directory; add the file's name", quote(p))
	}
	return ""
}

// serviceFileProblem says whether something else than a path was given. The
// usual mistake is the content of the key, which must not be repeated.
func serviceFileProblem(p string) string {
	if strings.ContainsAny(p, "{}\n\r\x00") || strings.Contains(p, "-----BEGIN") {
		return "holds the content of a key and not the path of a file; write the key to a file that only this user can read, and give its path"
	}
	return ""
}

func emptyProblem(s string) string {
	if s == "" {
		return "is empty; leave the key out for the default"
	}
	return ""
}

// kubeNameProblem says what is wrong with the name of a Kubernetes object or,
// without dots, of a namespace: the API server would refuse it.
func kubeNameProblem(name string, dots bool) string {
	if problem := emptyProblem(name); problem != "" {
		return problem
	}
	most, may := 63, "lower-case letters, digits and '-'"
	if dots {
		most, may = 253, "lower-case letters, digits, '-' and '.'"
	}
	if len(name) > most {
		return fmt.Sprintf("has %d characters; Kubernetes takes at most %d", len(name), most)
	}
	for part := range strings.SplitSeq(name, ".") {
		if part == "" || part[0] == '-' || part[len(part)-1] == '-' {
			return fmt.Sprintf("%s does not begin and end with a letter or digit, as Kubernetes requires", quote(name))
		}
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || dots && r == '.') {
			return fmt.Sprintf("%s has the character %q; Kubernetes takes %s", quote(name), r, may)
		}
	}
	return ""
}
