package accounts

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"oauth-server/internal/store"
)

// knownTable holds, by username, the addresses and counts learned from sign-ins. Sign-ins are too
// frequent to be recorded as events.
var knownTable = store.Table{Name: "known_addresses"}

// Limits on the known addresses of a user.
const (
	mostKnown    = 20
	knownFor     = 90 * 24 * time.Hour
	knownRefresh = 24 * time.Hour // how old the stored time of an address may get before it is updated
)

// Known is what the server has learned about a user from sign-ins.
type Known struct {
	Username string
	StampID  string // of the user; a Known does not apply to another user with the same name
	// RowFrom is when the current row of wrong passwords began: at the last correct password, or
	// when an operator ended the previous row.
	RowFrom time.Time
	// Addresses maps each address with a correct password to a recent time of use. [Deriver]
	// derives the keys from the address and the user's stamp, so a revocation invalidates them all.
	Addresses map[string]time.Time
}

// of returns k if it belongs to the user, or an empty Known if it belongs to a former user with the
// same name.
func (k Known) of(u *User) Known {
	if k.StampID != u.Stamp.ID {
		k = Known{}
	}
	k.Username, k.StampID = u.Name, u.Stamp.ID
	return k
}

// EndRow ends the row of wrong passwords at now, or a millisecond after its start if now is not
// later than that.
func (k *Known) EndRow(now time.Time) {
	now = now.UTC().Truncate(time.Millisecond)
	if !now.After(k.RowFrom) {
		now = k.RowFrom.Add(time.Millisecond)
	}
	k.RowFrom = now
}

// Add makes an address known. If there are too many, the oldest are dropped.
func (k *Known) Add(address string, now time.Time) {
	delete(k.Addresses, address)
	oldest := slices.SortedFunc(maps.Keys(k.Addresses), func(a, b string) int {
		return cmp.Or(k.Addresses[a].Compare(k.Addresses[b]), cmp.Compare(a, b))
	})
	for _, a := range oldest[:max(len(oldest)-(mostKnown-1), 0)] {
		delete(k.Addresses, a)
	}
	if k.Addresses == nil {
		k.Addresses = map[string]time.Time{}
	}
	k.Addresses[address] = now.UTC().Truncate(time.Millisecond)
}

type knownValue struct {
	StampID   string               `json:"stampId,omitempty"`
	RowFrom   time.Time            `json:"rowFrom,omitzero"`
	Addresses map[string]time.Time `json:"addresses,omitempty"` // keys are base64url
}

func encodeKnown(k *Known) (store.Record, error) {
	value, err := json.Marshal(knownValue{k.StampID, k.RowFrom, k.Addresses})
	last := k.RowFrom
	for _, at := range k.Addresses {
		if at.After(last) {
			last = at
		}
	}
	return store.Record{Key: k.Username, Owner: k.Username, Value: value, Expires: last.Add(knownFor)}, err
}

func decodeKnown(r *store.Record) (Known, error) {
	var v knownValue
	err := store.Unmarshal(r, &v)
	return Known{r.Key, v.StampID, v.RowFrom, v.Addresses}, err
}

// Known returns the record for that username, which may belong to a former user with the same name.
// It returns the zero Known if there is no readable record.
func (r *Repository) Known(ctx context.Context, username string) (Known, error) {
	k, _, err := r.known.Get(ctx, username)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnreadable) {
		return Known{}, nil
	}
	return k, err
}

// ChangeKnown changes the record of a user. edit is called again if another writer was faster.
func (r *Repository) ChangeKnown(ctx context.Context, u *User, edit func(k *Known)) error {
	for {
		k, seen, err := r.known.Get(ctx, u.Name)
		if errors.Is(err, store.ErrUnreadable) {
			k, seen, err = Known{}, store.Seen{}, r.ForgetKnown(ctx, u.Name)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		k = k.of(u)
		edit(&k)
		if _, err = r.known.Put(ctx, &k, seen); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// ForgetKnown removes everything learned about a user from sign-ins.
func (r *Repository) ForgetKnown(ctx context.Context, username string) error {
	return r.known.Backend.Delete(ctx, knownTable, nil, username)
}
