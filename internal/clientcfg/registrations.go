package clientcfg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/internal/store/document"
)

// UsesTable holds when secrets were last used, by the digest of the secret.
var UsesTable = store.Table{Name: "secret_uses"}

// Registrations stores the clients. It implements [Store], [RegistrationStore] and [SecretUses], and is safe
// for concurrent use.
type Registrations struct {
	follower *store.Follower
	clients  store.Collection[Client]
	uses     store.Collection[SecretUse]
}

// NewRegistrations returns the Registrations in f's store. It appends changes through f.
func NewRegistrations(f *store.Follower) *Registrations {
	b := f.Backend()
	return &Registrations{
		f,
		store.Collection[Client]{Backend: b, Table: ClientsTable, Encode: EncodeClient, Decode: validClient},
		store.Collection[SecretUse]{Backend: b, Table: UsesTable, Encode: encodeUse, Decode: decodeUse},
	}
}

// Clients implements [Store].
func (s *Registrations) Clients(ctx context.Context, each func(Record)) error {
	all := s.clients
	all.Skipped = func(_, id string, err error) { each(unreadableRecord(id, err)) }
	err := all.List(ctx, store.Query{}, func(c Client, _ store.Seen) error {
		each(Record{ID: c.ID, Client: c})
		return nil
	})
	if err != nil {
		return fmt.Errorf("clientcfg: read clients: %w", err)
	}
	return nil
}

// Client implements [Store].
func (s *Registrations) Client(ctx context.Context, id string) (Client, error) {
	c, err := s.stored(ctx, id)
	if err != nil {
		return c, err
	}
	for used, d := range map[*time.Time]secret.Digest{&c.SecretUsed: c.SecretDigest, &c.Former.Used: c.Former.Digest} {
		if d.IsZero() {
			continue
		}
		switch use, _, err := s.uses.Get(ctx, d.Key()); {
		case err == nil:
			*used = use.At
		case !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrUnreadable): // an unreadable use was edited by hand and is ignored
			return c, fmt.Errorf("clientcfg: read use of a secret: %w", err)
		}
	}
	return c, nil
}

// stored reads a client without the uses of its secrets. Errors: [ErrNotFound],
// [ErrUnreadableClient].
func (s *Registrations) stored(ctx context.Context, id string) (Client, error) {
	c, _, err := s.clients.Get(ctx, id)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, store.ErrNotFound):
		err = fmt.Errorf("%w: %s", ErrNotFound, id)
	case errors.Is(err, store.ErrUnreadable):
		err = unreadableRecord(id, err).Err
	default:
		err = fmt.Errorf("clientcfg: read client: %w", err)
	}
	return Client{}, err
}

// CreateClient implements [RegistrationStore].
func (s *Registrations) CreateClient(ctx context.Context, c Client, e Event) error {
	c.Version = 1
	return s.change(ctx, c.ID, e, func() (before Client, after *Client, err error) {
		switch _, err := s.stored(ctx, c.ID); {
		case err == nil, errors.Is(err, ErrUnreadableClient):
			return before, nil, fmt.Errorf("%w: %s", ErrExists, c.ID)
		case !errors.Is(err, ErrNotFound):
			return before, nil, err
		}
		return before, &c, nil
	})
}

// UpdateClient implements [RegistrationStore].
func (s *Registrations) UpdateClient(ctx context.Context, c Client, e Event) error {
	next := c
	next.Version++
	return s.change(ctx, c.ID, e, func() (before Client, after *Client, err error) {
		before, err = s.unchanged(ctx, &c)
		return before, &next, err
	})
}

// DeleteClient implements [RegistrationStore].
func (s *Registrations) DeleteClient(ctx context.Context, id string, e Event) error {
	return s.change(ctx, id, e, func() (before Client, _ *Client, err error) {
		before, err = s.stored(ctx, id)
		if errors.Is(err, ErrUnreadableClient) {
			err = nil // unreadable clients can be deleted too
		}
		return before, nil, err
	})
}

// DeleteUnchanged implements [RegistrationStore].
func (s *Registrations) DeleteUnchanged(ctx context.Context, c Client, e Event) error {
	return s.change(ctx, c.ID, e, func() (before Client, _ *Client, err error) {
		before, err = s.unchanged(ctx, &c)
		return before, nil, err
	})
}

// unchanged returns the stored client if it is still the same as c was read.
func (s *Registrations) unchanged(ctx context.Context, c *Client) (Client, error) {
	stored, err := s.stored(ctx, c.ID)
	switch {
	case err != nil:
		return stored, err
	case stored.Version != c.Version:
		return stored, fmt.Errorf("%w: %s is at version %d, not %d", ErrConflict, c.ID, stored.Version, c.Version)
	case stored.Stamp.ID != c.Stamp.ID:
		return stored, fmt.Errorf("%w: %s was deleted and created again", ErrConflict, c.ID)
	}
	return stored, nil
}

// change appends an event and the client that to returns as after. If after is nil, the client is
// deleted.
func (s *Registrations) change(ctx context.Context, id string, e Event, to func() (before Client, after *Client, err error)) error {
	var before, now Client
	err := AppendEvent(ctx, s.follower, func() (_ Event, _ []store.Write, err error) {
		var after *Client
		if before, after, err = to(); err != nil {
			return e, nil, err
		}
		w := store.Write{Table: ClientsTable, Record: store.Record{Key: id}, Delete: after == nil}
		if after != nil {
			now = *after
			w.Record, _ = EncodeClient(after) // never fails
		}
		return e, []store.Write{w}, nil
	})
	if err == nil {
		s.forgetUses(ctx, &before, &now)
	}
	return err
}

// forgetUses removes the recorded uses of secrets that a client no longer has. If it fails they
// stay, but nothing shows them.
func (s *Registrations) forgetUses(ctx context.Context, before, now *Client) {
	var keys []string
	for _, d := range []secret.Digest{before.SecretDigest, before.Former.Digest} {
		if !d.IsZero() && d != now.SecretDigest && d != now.Former.Digest {
			keys = append(keys, d.Key())
		}
	}
	if len(keys) > 0 {
		_ = s.follower.Backend().DeleteAll(ctx, UsesTable, keys...)
	}
}

// RestampClients gives every client a new stamp, which invalidates everything issued before,
// including grants that a restored backup does not contain. It skips unreadable clients, because
// nothing is accepted for them anyway.
func (s *Registrations) RestampClients(ctx context.Context) error {
	return RewriteAll(ctx, s.follower, &s.clients, func(c *Client) {
		c.Stamp = secret.NewStamp()
		c.Version++
	})
}

// CheckRecord returns why a record of [ClientsTable] is not served, or nil.
func CheckRecord(r *store.Record) error {
	return readClient(r).Err
}

// CheckUse returns why a record of [UsesTable] cannot be read, or nil.
var CheckUse = store.Readable(decodeUse)

// RecordUses implements [SecretUses].
func (s *Registrations) RecordUses(ctx context.Context, uses []SecretUse) error {
	return s.uses.PutAll(ctx, uses)
}

func encodeUse(u *SecretUse) (store.Record, error) {
	w := document.New(40)
	w.Time("at", u.At)
	return store.Record{Key: u.Digest.Key(), Owner: u.ClientID, Value: w.End(), Version: u.At.UnixMilli()}, nil
}

func decodeUse(r *store.Record) (SecretUse, error) {
	var doc struct {
		At time.Time `json:"at"`
	}
	err := store.Unmarshal(r, &doc)
	if err == nil && doc.At.IsZero() {
		err = errors.New("its time is missing")
	}
	return SecretUse{ClientID: r.Owner, At: doc.At}, err
}
