package grants

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

// knownTable holds what sign-ins teach about users, by username. They are too many for the trail.
var knownTable = store.Table{Name: "known_addresses"}

// Bounds of the known addresses of a user.
const (
	mostKnown    = 20
	knownFor     = 90 * 24 * time.Hour
	knownRefresh = 24 * time.Hour // age at which the time of one is stored anew
)

// Known is what sign-ins have taught about a user.
type Known struct {
	Username string
	StampID  string // of the user; another one of that name is not known
	// RowFrom is when the row of wrong passwords that is counted began: at a right one, or when an
	// operator ended the one before.
	RowFrom time.Time
	// Addresses are those of right passwords, each with the time of a recent one. They are derived by
	// [Deriver], from the stamp too, so a revocation ends all.
	Addresses map[string]time.Time
}

// of returns what is known of the user, and not of a former one of that name.
func (k Known) of(u *User) Known {
	if k.StampID != u.Stamp.ID {
		k = Known{}
	}
	k.Username, k.StampID = u.Name, u.Stamp.ID
	return k
}

// EndRow ends the row of wrong passwords: now, but later than it began.
func (k *Known) EndRow(now time.Time) {
	now = now.UTC().Truncate(time.Millisecond)
	if !now.After(k.RowFrom) {
		now = k.RowFrom.Add(time.Millisecond)
	}
	k.RowFrom = now
}

// Add makes an address a known one. The oldest leave for it if there are too many.
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
	Addresses map[string]time.Time `json:"addresses,omitempty"` // keys of base64url
}

func encodeKnown(k *Known) (store.Record, error) {
	value, err := json.Marshal(knownValue{k.StampID, k.RowFrom, k.Addresses})
	last := k.RowFrom
	for _, at := range k.Addresses {
		last = later(last, at)
	}
	return store.Record{Key: k.Username, Owner: k.Username, Value: value, Expires: last.Add(knownFor)}, err
}

func decodeKnown(r *store.Record) (Known, error) {
	var v knownValue
	err := store.Unmarshal(r, &v)
	return Known{r.Key, v.StampID, v.RowFrom, v.Addresses}, err
}

// Known implements [KnownAddresses].
func (r *Repository) Known(ctx context.Context, username string) (Known, error) {
	k, _, err := r.known.Get(ctx, username)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnreadable) {
		return Known{}, nil
	}
	return k, err
}

// ChangeKnown implements [KnownAddresses].
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

// ForgetKnown removes what sign-ins have taught about a user.
func (r *Repository) ForgetKnown(ctx context.Context, username string) error {
	return r.known.Backend.Delete(ctx, knownTable, nil, username)
}
