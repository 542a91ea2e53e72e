package gcs

const (
	hintCorrupt         = "this object is not ours: configure another object name, or move it away"
	hintNoBucket        = "create the bucket, or correct bucket and endpoint_url in the configuration"
	hintNoCredentials   = "give the process credentials: a service account of the platform, or service_file"
	hintUnauthenticated = "the service does not accept the credentials: check service_file, or the service account of the platform and its key"
	hintUnsupported     = "this store does not implement conditional writes; a lease needs a store that does"
	hintStrange404      = "this is not Google's answer for a missing object: does endpoint_url point at the store itself?"
	hintRedirect        = "the endpoint redirects, which is not followed: correct endpoint_url, or look for a proxy that asks for a login"
	hintRetention       = "a retention policy or hold forbids overwriting: use a bucket without one for this object"
)

// permissions name what a request of that kind needs.
var permissions = map[string]string{
	"load":    "grant storage.objects.get on the object and storage.objects.list on the bucket; without list the service may answer 403 for an object that does not exist",
	"list":    "grant storage.objects.list on the bucket, or check that the bucket exists",
	"create":  "grant storage.objects.create on the object",
	"replace": "grant storage.objects.create and storage.objects.delete on the object; overwriting needs both (roles/storage.objectUser has them, objectCreator has not)",
	"remove":  "grant storage.objects.delete on the probe's objects",
}
