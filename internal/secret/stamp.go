package secret

// Stamp is what a client and a user each have, and what everything that is issued to them carries: the
// stamp that the issuing instance knew. A revocation increases the count, so that no clock has a part in
// it. Stamps are in stored records and access tokens and are not secret.
type Stamp struct {
	// ID is random and made with the record, so another client or user of the same name has another one.
	ID string `json:"id,omitempty" bson:"id,omitempty"`
	// Count is 1 for a new record.
	Count int64 `json:"n,omitempty" bson:"n,omitempty"`
}

// NewStamp returns the stamp of a new client or user.
func NewStamp() Stamp { return Stamp{ID(), 1} }

// Revoked returns the stamp of the record after a revocation.
func (s Stamp) Revoked() Stamp { return Stamp{s.ID, s.Count + 1} }

// Accepts reports whether the carried stamp is of this record and not from before its last revocation. A
// carried stamp that is newer than what is known of the record is accepted.
func (s Stamp) Accepts(carried Stamp) bool { return carried.ID == s.ID && carried.Count >= s.Count }

// Behind reports whether the carried stamp is of this record after a revocation that is not known yet.
func (s Stamp) Behind(carried Stamp) bool { return carried.ID == s.ID && carried.Count > s.Count }
