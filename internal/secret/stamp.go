package secret

import "cmp"

// Stamp is what a client and a user each have, and what everything that is issued to them carries: the
// stamp that the issuing instance knew. A revocation counts the stamp on, so that no clock has a part
// in it. It is in the records of the stores and in access tokens, and no secret.
type Stamp struct {
	// ID is random and made with the record, so another client or user of the same name has another. It
	// is empty in a record of an earlier release that was not revoked since.
	ID string `json:"id,omitempty" bson:"id,omitempty"`
	// Count is 1 for a new record, and 0 where there is no ID.
	Count int64 `json:"n,omitempty" bson:"n,omitempty"`
}

// noID is the ID that a carried stamp has if the record has none. No stamp at all is what an earlier
// release has issued. No random ID is that short.
const noID = "-"

// NewStamp returns the stamp of a new client or user.
func NewStamp() Stamp { return Stamp{}.Revoked() }

// Revoked returns the stamp of the record after a revocation, which gives it an ID if it has none.
func (s Stamp) Revoked() Stamp { return Stamp{ID: cmp.Or(s.ID, ID()), Count: s.Count + 1} }

// Carried returns what is carried by that which is issued under the stamp of a record.
func (s Stamp) Carried() Stamp { return Stamp{ID: cmp.Or(s.ID, noID), Count: s.Count} }

// IsZero reports whether there is no stamp.
func (s Stamp) IsZero() bool { return s == Stamp{} }

// Accepts reports whether the carried stamp is of this record and not from before its last revocation.
// One that is newer than what is known of the record is accepted. What carries no stamp, or that of a
// record without an ID, is accepted only if it is inTime: issued late enough by the clocks.
func (s Stamp) Accepts(carried Stamp, inTime bool) bool {
	switch carried.ID {
	case "":
		return inTime
	case noID:
		return inTime && carried.Count >= s.Count
	}
	return carried.ID == s.ID && carried.Count >= s.Count
}

// Behind reports whether the carried stamp is of this record after a revocation that is not known yet. If
// this record has no ID it may be, or be of another record: only the newest record shows that.
func (s Stamp) Behind(carried Stamp) bool {
	return (s.ID == "" || carried.ID == s.ID) && carried.Count > s.Count
}
