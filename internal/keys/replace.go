package keys

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors of [Replacement.Now] and [Replacement.Ahead].
var (
	// ErrNoKeys is returned if the store has no keys.
	ErrNoKeys = errors.New("there is no signing key yet: the first start of a server creates it")
	// ErrAhead is returned if the next keys are already published.
	ErrAhead = errors.New("the next signing key is already published")
)

// Replacement replaces signing keys on an operator's order, while servers are running.
type Replacement struct {
	Store   Store
	Secrets Secrets
	// Time is the time of the replacement.
	Time time.Time
	// SecretLost makes it encrypt the new keys with the current secret, even if the stored keys
	// were encrypted with another one. Servers running with the other secret cannot read the new
	// keys.
	SecretLost bool
}

// Now makes a new key for every algorithm in use, which signs at once, and deletes all other keys:
// signing keys, keys that only verify, and keys published ahead. Tokens signed with them become
// invalid on an instance as soon as it refreshes its keys. After an error some old keys may remain.
// Calling Now again completes the replacement.
func (p Replacement) Now(ctx context.Context) (made, withdrawn []Record, err error) {
	made, withdrawn, err = p.addNext(ctx, p.Time)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range withdrawn {
		if err := p.Store.DeleteKey(ctx, k.ID); err != nil {
			return made, nil, fmt.Errorf("keys: withdraw %q: %w", k.ID, err)
		}
	}
	return made, withdrawn, nil
}

// Ahead makes the next key for every algorithm in use. It is published at once and starts signing
// after the duration ahead, as in the servers' own rotation. Errors: [ErrAhead].
func (p Replacement) Ahead(ctx context.Context, ahead time.Duration) (made []Record, err error) {
	stored, err := p.Store.Keys(ctx)
	if err != nil {
		return nil, fmt.Errorf("keys: read: %w", err)
	}
	for _, k := range stored {
		if k.ActiveFrom.After(p.Time) {
			return nil, fmt.Errorf("%w: %s signs from %s on", ErrAhead, k.ID, k.ActiveFrom.UTC().Format(time.RFC3339))
		}
	}
	made, _, err = p.addNext(ctx, p.Time.Add(ahead))
	return made, err
}

// addNext adds the next generation of every algorithm in the store, and returns the new keys and
// all previous ones. If a server has just added that generation, it starts over.
func (p Replacement) addNext(ctx context.Context, activeFrom time.Time) (made, before []Record, err error) {
	for {
		if before, err = p.Store.Keys(ctx); err != nil {
			return nil, nil, fmt.Errorf("keys: read: %w", err)
		}
		made, err = p.addAfter(ctx, before, activeFrom)
		if !errors.Is(err, ErrExists) || ctx.Err() != nil {
			return made, before, err
		}
	}
}

func (p Replacement) addAfter(ctx context.Context, before []Record, activeFrom time.Time) (made []Record, err error) {
	if len(before) == 0 {
		return nil, ErrNoKeys
	}
	next := make([]Record, 0, len(before))
	for _, last := range newest(before) { // make all of them before adding the first
		r, err := p.successor(last, activeFrom)
		if err != nil {
			return nil, err
		}
		next = append(next, r)
	}
	for _, r := range next {
		if err := p.Store.AddKey(ctx, r); err != nil {
			return nil, fmt.Errorf("keys: add generation %d of %s: %w", r.Generation, r.Algorithm, err)
		}
	}
	return next, nil
}

// newest returns the last generation of every algorithm.
func newest(all []Record) []Record {
	var last []Record
	for _, alg := range Algorithms() {
		var found *Record
		for i, k := range all {
			if k.Algorithm == alg && (found == nil || k.Generation > found.Generation) {
				found = &all[i]
			}
		}
		if found != nil {
			last = append(last, *found)
		}
	}
	return last
}

// successor makes the key after last. It is encrypted with the same secret as last, because running
// servers can read last. A server that could not read the new key would sign with the old one
// forever.
func (p Replacement) successor(last Record, activeFrom time.Time) (Record, error) {
	k, err := generate(last.Algorithm, last.Generation+1, p.Time, activeFrom)
	if err != nil {
		return Record{}, err
	}
	how, secret, _ := p.Secrets.find(last)
	if how == WithOther {
		if p.SecretLost {
			secret = p.Secrets.Current
		}
		if secret == nil {
			_, err := p.Secrets.open(last)
			return Record{}, err
		}
	}
	r := k.record
	if secret != nil {
		r.PrivateKey = secret.encrypt(r, r.PrivateKey)
	}
	return r, nil
}
