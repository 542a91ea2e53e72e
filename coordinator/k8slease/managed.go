package k8slease

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writtenAt is when the annotation was last written, by the API server's clock, as
// far as managedFields tell: the time of the newest entry that names it. An entry
// has one time for all fields of its manager, so it may be later than the write,
// never earlier. Zero if it cannot be told, which also holds if an entry that
// might be newer cannot be read.
func (o *object) writtenAt(annotation string) time.Time {
	var entries []metav1.ManagedFieldsEntry
	if json.Unmarshal(o.meta["managedFields"], &entries) != nil {
		return time.Time{}
	}
	var newest time.Time
	for _, e := range entries {
		named, err := names(e, annotation)
		switch {
		case err != nil, named && e.Time == nil:
			return time.Time{}
		case named && e.Time.After(newest):
			newest = e.Time.Time
		}
	}
	return newest
}

// names reports whether an entry contains the annotation.
func names(e metav1.ManagedFieldsEntry, annotation string) (bool, error) {
	if e.FieldsV1 == nil {
		return false, nil
	}
	var set struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal(e.FieldsV1.Raw, &set); err != nil {
		return false, err
	}
	_, ok := set.Metadata.Annotations["f:"+annotation]
	return ok, nil
}
