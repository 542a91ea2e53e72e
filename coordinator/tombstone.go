package coordinator

// tombstone reports whether the lease was released by its holder.
func (s sighting) tombstone() bool {
	return s.known && !s.absent && s.lease.Corrupt == nil && s.lease.Record.State == Released && !s.lease.Record.Foreign()
}

// tombstoneTrusted is rule 11: a tombstone is claimed at once only if nothing
// this attempt knows could be newer than it.
func (m *machine) tombstoneTrusted(fence Fence) bool {
	if !m.seen.tombstone() {
		return false
	}
	r := m.seen.lease.Record
	seenHeld := m.lastHeld.epoch == r.Epoch && m.lastHeld.incarnation != ""
	switch {
	case m.copied():
		return false // a copied object says nothing about this lease
	case r.Epoch < m.epochMax:
		return false // an old version was restored
	case seenHeld && m.lastHeld.incarnation != r.Incarnation:
		return false // somebody else's tombstone for a term that is held
	case fence.Found:
		return !fence.outranks(r)
	}
	return seenHeld
}

// outranks reports whether the document was sealed by a later term than that of
// the record, or by another one of its epoch (rule 2): it may be at work.
func (f Fence) outranks(r Record) bool {
	return r.Epoch < f.Epoch || r.Epoch == f.Epoch && f.Term != "" && f.Term != r.Term
}

// copied reports whether the record is that of another lease.
func (m *machine) copied() bool {
	name := m.seen.lease.Record.Lease
	return name != "" && name != m.cfg.Lease
}
