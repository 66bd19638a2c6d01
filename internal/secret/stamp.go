package secret

// Stamp identifies a version of a client or user. Everything issued to them carries the stamp that
// the issuing instance knew. A revocation increases Count, so it does not depend on any clock.
// Stamps are in stored records and access tokens and are not secret.
type Stamp struct {
	// ID is random and made with the record, so another client or user with the same name has a
	// different one.
	ID string `json:"id,omitempty" bson:"id,omitempty"`
	// Count is 1 for a new record.
	Count int64 `json:"n,omitempty" bson:"n,omitempty"`
}

// NewStamp returns the stamp of a new client or user.
func NewStamp() Stamp { return Stamp{ID(), 1} }

// Revoked returns the stamp for the record after a revocation.
func (s Stamp) Revoked() Stamp { return Stamp{s.ID, s.Count + 1} }

// Accepts reports whether the carried stamp belongs to this record and is not older than its last
// revocation. It accepts a carried stamp that is newer than s.
func (s Stamp) Accepts(carried Stamp) bool { return carried.ID == s.ID && carried.Count >= s.Count }

// Behind reports whether the carried stamp belongs to this record after a revocation that s does
// not include yet.
func (s Stamp) Behind(carried Stamp) bool { return carried.ID == s.ID && carried.Count > s.Count }
