package k8slease

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/sf2loki/sf2loki-ha/cas"
	"github.com/sf2loki/sf2loki-ha/coordinator"
)

// Annotation is the key under which the record is kept.
const Annotation = "sf2loki.io/lease-record"

type fields = map[string]json.RawMessage

// object is a Lease as the API server sent it. Everything that is not ours
// stays as bytes, so that it can be sent back unchanged.
type object struct {
	top, meta, spec fields
	annotations     map[string]string

	uid, resourceVersion string
	// known are the fields of the spec that this code understands.
	known coordinationv1.LeaseSpec
	// date is the server's clock when it answered; zero if it did not say.
	date time.Time
	// record is the annotation; written tells whether there is a readable one.
	record  coordinator.Record
	written bool
}

// parseObject reads an answer. An error means that this is not the Lease of
// that name: it comes from something that is not a Kubernetes API server.
func parseObject(data []byte, name string) (*object, error) {
	o := &object{}
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name            string            `json:"name"`
			UID             string            `json:"uid"`
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := errors.Join(json.Unmarshal(data, &head), json.Unmarshal(data, &o.top)); err != nil {
		return nil, fmt.Errorf("not a Lease: %w", err)
	}
	// The uid is needed as well: with it an update that meets no lease any more is
	// refused, without it Kubernetes creates the Lease anew.
	if head.Kind != "Lease" || head.APIVersion != coordinationv1.SchemeGroupVersion.String() || head.Metadata.Name != name ||
		head.Metadata.ResourceVersion == "" || head.Metadata.UID == "" {
		return nil, fmt.Errorf("not the Lease that was asked for: %q %q %q, uid %q, resourceVersion %q",
			head.APIVersion, head.Kind, head.Metadata.Name, head.Metadata.UID, head.Metadata.ResourceVersion)
	}
	o.uid, o.resourceVersion, o.annotations = head.Metadata.UID, head.Metadata.ResourceVersion, head.Metadata.Annotations
	if err := json.Unmarshal(o.top["metadata"], &o.meta); err != nil {
		return nil, fmt.Errorf("not a Lease: metadata: %w", err)
	}
	if raw, ok := o.top["spec"]; ok {
		if err := json.Unmarshal(raw, &o.spec); err != nil {
			return nil, fmt.Errorf("not a Lease: spec: %w", err)
		}
	}
	// A field that cannot be read counts as absent: the lease then goes stale
	// like any other, and its bytes are still part of the version.
	for key, into := range map[string]any{
		"holderIdentity": &o.known.HolderIdentity, "leaseDurationSeconds": &o.known.LeaseDurationSeconds,
		"acquireTime": &o.known.AcquireTime, "renewTime": &o.known.RenewTime, "leaseTransitions": &o.known.LeaseTransitions,
	} {
		if raw, ok := o.spec[key]; ok {
			_ = json.Unmarshal(raw, into)
		}
	}
	if text, ok := o.annotations[Annotation]; ok {
		rec, err := coordinator.ParseRecord([]byte(text))
		o.record, o.written = rec, err == nil
	}
	return o, nil
}

// ours reports whether the object is as a write of this program left it, apart
// from what does not matter to the lease. The annotation alone does not tell:
// other software that takes the lease keeps it.
func (o *object) ours() bool {
	return o.written && !o.record.Foreign() && o.record.WriteID != "" && agrees(o.known, specOf(o.record))
}

// lease is the object as the election sees it.
func (o *object) lease() coordinator.Lease {
	l := coordinator.Lease{Version: o.version(), Record: o.record}
	if !o.ours() {
		l.Record = foreign(o.known, o.record)
	}
	return l
}

// version names the state of the lease.
func (o *object) version() cas.Version {
	if o.ours() {
		return cas.Version("write " + o.record.WriteID + " of " + o.uid)
	}
	// Keys sorted and white space dropped: two API servers of different versions
	// may write one spec differently.
	spec, _ := json.Marshal(o.spec)
	h := sha256.New()
	h.Write(spec)
	h.Write([]byte{0})
	h.Write([]byte(o.annotations[Annotation]))
	return cas.Version("spec " + hex.EncodeToString(h.Sum(nil)[:16]) + " of " + o.uid)
}

// with returns the bytes of the object with the record in it, to be written on
// the resourceVersion that was read.
func (o *object) with(r coordinator.Record) ([]byte, error) {
	text, err := r.Marshal()
	if err != nil {
		return nil, err
	}
	spec, err := merge(o.spec, specFields(r))
	if err != nil {
		return nil, err
	}
	return o.annotated(Annotation, string(text), map[string]any{"spec": spec})
}

// annotated returns the bytes of the object with that annotation and those fields
// in it, to be written on the resourceVersion that was read.
func (o *object) annotated(key, text string, set map[string]any) ([]byte, error) {
	annotations := map[string]string{}
	maps.Copy(annotations, o.annotations)
	annotations[key] = text
	meta, err := merge(o.meta, map[string]any{"annotations": annotations})
	if err != nil {
		return nil, err
	}
	all := map[string]any{"metadata": meta}
	maps.Copy(all, set)
	top, err := merge(o.top, all)
	if err != nil {
		return nil, err
	}
	return json.Marshal(top)
}

// newObject is a Lease that does not exist yet.
func newObject(namespace, name string) *object {
	quoted := func(s string) json.RawMessage { b, _ := json.Marshal(s); return b }
	return &object{
		top:  fields{"apiVersion": quoted(coordinationv1.SchemeGroupVersion.String()), "kind": quoted("Lease")},
		meta: fields{"namespace": quoted(namespace), "name": quoted(name)},
	}
}

// merge returns a copy of old with those fields set, or removed where nil.
func merge(old fields, set map[string]any) (fields, error) {
	out := fields{}
	for k, v := range old {
		out[k] = bytes.Clone(v)
	}
	for k, v := range set {
		if v == nil {
			delete(out, k)
			continue
		}
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode lease: %w", err)
		}
		out[k] = raw
	}
	return out, nil
}
