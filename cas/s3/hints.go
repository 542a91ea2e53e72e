package s3

import "fmt"

const (
	hintCorrupt       = "this object is not ours: configure another key, or move it away"
	hintNoBucket      = "create the bucket, or correct bucket, region and endpoint_url in the configuration"
	hintNoCredentials = "give the process credentials: a task or instance role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	hintUnsupported   = "this store does not implement conditional writes; a lease needs a store that does"
	hintStrange404    = "this is not S3's answer for a missing key: does endpoint_url point at the store itself?"
	hintKMS           = "the bucket's KMS key refuses: allow kms:GenerateDataKey and kms:Decrypt to this role, and check that the key is enabled"
)

// permissions name what a request of that kind needs, for a bare AccessDenied.
var permissions = map[string]string{
	"load":    "allow s3:GetObject on the object and s3:ListBucket on the bucket; without s3:ListBucket S3 answers 403 for a key that does not exist",
	"create":  "allow s3:PutObject on the object; with SSE-KMS also kms:GenerateDataKey and kms:Decrypt; look for a Deny in the bucket policy",
	"replace": "allow s3:PutObject and s3:GetObject on the object (If-Match needs both); with SSE-KMS also kms:GenerateDataKey and kms:Decrypt; look for a Deny in the bucket policy",
	"remove":  "allow s3:DeleteObject on the probe's objects, and on nothing else",
}

// denials are refusals that no bucket permission mends.
var denials = map[string]string{
	"RequestTimeTooSkewed":  "the clock of this machine is more than 15 minutes off: repair time synchronisation",
	"ExpiredToken":          "the session credentials have expired and were not renewed: check the source of the credentials",
	"ExpiredTokenException": "the session credentials have expired and were not renewed: check the source of the credentials",
	"TokenRefreshRequired":  "the session credentials must be renewed: check the source of the credentials",
	"InvalidToken":          "the session token does not belong to the keys: check AWS_SESSION_TOKEN",
	"InvalidAccessKeyId":    "this store does not know the access key: check AWS_ACCESS_KEY_ID, and that endpoint_url is the store that issued it",
	"SignatureDoesNotMatch": "the secret key is wrong, or a proxy changes requests on the way: check AWS_SECRET_ACCESS_KEY",
	"AccountProblem":        "the AWS account has a problem: ask its owner",
	"AllAccessDisabled":     "all access to the bucket is disabled: ask its owner",
	"NotSignedUp":           "the AWS account is not signed up for S3",
	"InvalidPayer":          "access to the bucket was switched off by its payer",
}

func hintRegion(a answer) string {
	switch {
	case a.region != "":
		return fmt.Sprintf("the bucket is in region %s: set region to it", a.region)
	case a.location != "":
		return fmt.Sprintf("the endpoint redirects to %s, which is not followed: set region or endpoint_url to where the bucket is", a.location)
	default:
		return "the bucket is in another region than the one configured, or endpoint_url redirects: set region and endpoint_url to where the bucket is"
	}
}
