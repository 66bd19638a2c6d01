package keys

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"oauth-server/internal/store"
)

// CheckEvery is the longest interval allowed between two calls of [Ring.Maintain]: a minute, but at
// most a quarter of [PublishAhead]. Deleting a key relies on every instance noticing its successor
// within this time.
func (r *Ring) CheckEvery() time.Duration { return r.opts.checkEvery() }

func (o *Options) checkEvery() time.Duration { return min(time.Minute, PublishAhead(o.RotateEvery)/4) }

// Refresh publishes the keys that are in the store now. Tokens signed with a key that an operator
// has withdrawn are then refused. It only reads the store. On an error the last good snapshot
// stays.
func (r *Ring) Refresh(ctx context.Context) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	all, err := r.load(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errNoneLeft
	}
	return r.publish(all)
}

// errNoneLeft is returned if the store has no keys but this instance has: the store has lost its
// data. Adding a new key would withdraw the keys that verifiers accept, and obstruct a restore.
var errNoneLeft = errors.New("keys: the store has lost all signing keys")

// Maintain takes the steps that are due. It reads the store, makes the next key, deletes keys with
// no unexpired tokens, publishes the rest, and encrypts keys that are not encrypted with the
// current secret. On an error the last good snapshot stays. It is safe to call at any time, from
// any number of instances.
func (r *Ring) Maintain(ctx context.Context) error { return r.maintain(ctx, r.opts.Now()) }

func (r *Ring) maintain(ctx context.Context, now time.Time) error {
	r.reading.Lock()
	defer r.reading.Unlock()
	all, err := r.load(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 && r.current.Load() != nil {
		return errNoneLeft
	}
	if generation, activeFrom, due := nextKey(records(all), r.opts, now); due {
		if err := r.add(ctx, generation, now, activeFrom); err != nil {
			return err
		}
		if all, err = r.load(ctx); err != nil {
			return err
		}
	}
	live, err := r.retire(ctx, all, now)
	if err != nil {
		return err
	}
	if err := r.publish(live); err != nil {
		return err
	}
	return r.encrypt(ctx, live)
}

func (r *Ring) publish(live []*key) error {
	next, err := newSnapshot(live, r.opts.Algorithm)
	if err != nil {
		return err
	}
	r.current.Store(next)
	return nil
}

// load reads the stored keys and parses those that are not in the snapshot. So a running instance
// needs no secret for a key that it has already read. A starting instance skips unreadable records.
// For a running instance they are an error, because it may know those keys from before.
func (r *Ring) load(ctx context.Context) ([]*key, error) {
	stored, err := r.store.Keys(ctx)
	if errors.Is(err, store.ErrUnreadable) && len(stored) > 0 && r.current.Load() == nil {
		r.opts.Logger.WarnContext(ctx, "unreadable signing keys ignored; delete them with: oauth-server records --delete", slog.String("error", err.Error()))
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("keys: read: %w", err)
	}
	known := map[string]*key{}
	if s := r.current.Load(); s != nil {
		known = s.byID
	}
	all := make([]*key, 0, len(stored))
	for _, record := range stored {
		k, err := r.parsed(record, known[record.ID])
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// parsed returns the key of a stored record. known is the same key from an earlier read, or nil.
func (r *Ring) parsed(stored Record, known *key) (*key, error) {
	if known == nil {
		plain := stored
		var err error
		if plain.PrivateKey, err = r.opts.Secrets.open(stored); err != nil {
			return nil, err
		}
		if known, err = parse(plain); err != nil {
			return nil, err
		}
	}
	k := *known // copy, because published snapshots are immutable
	k.record.PrivateKey = stored.PrivateKey
	return &k, nil
}

// add makes and stores a key. It returns nil if another instance was first, because that key serves
// as well.
func (r *Ring) add(ctx context.Context, generation int64, now, activeFrom time.Time) error {
	k, err := generate(r.opts.Algorithm, generation, now, activeFrom)
	if err != nil {
		return err
	}
	stored := k.record
	stored.PrivateKey = r.opts.Secrets.seal(stored, stored.PrivateKey)
	switch err := r.store.AddKey(ctx, stored); {
	case errors.Is(err, ErrExists):
		return nil
	case errors.Is(err, store.ErrUnreadable) && generation > 1: // an older key signs
		r.opts.Logger.WarnContext(ctx, "signing keys not rotated: the next one is unreadable; delete it with: oauth-server records --delete",
			slog.String("algorithm", string(k.record.Algorithm)), slog.Int64("generation", generation), slog.String("error", err.Error()))
		return nil
	case err != nil:
		return fmt.Errorf("keys: add generation %d: %w", generation, err)
	}
	r.opts.Logger.InfoContext(ctx, "signing key added", slog.String("kid", k.record.ID),
		slog.String("algorithm", string(k.record.Algorithm)), slog.Int64("generation", generation), slog.Time("active_from", activeFrom))
	return nil
}

// retire deletes the keys with no unexpired tokens and returns the others.
func (r *Ring) retire(ctx context.Context, all []*key, now time.Time) ([]*key, error) {
	live := make([]*key, 0, len(all))
	rs := records(all)
	for _, k := range all {
		if !retired(k.record, rs, r.opts, now) {
			live = append(live, k)
			continue
		}
		if err := r.store.DeleteKey(ctx, k.record.ID); err != nil {
			return nil, fmt.Errorf("keys: delete %q: %w", k.record.ID, err)
		}
		r.opts.Logger.InfoContext(ctx, "signing key deleted", slog.String("kid", k.record.ID), slog.Int64("generation", k.record.Generation))
	}
	return live, nil
}

// encrypt encrypts stored keys that are not encrypted with the current secret. If another instance
// was first, the next call reads its result.
func (r *Ring) encrypt(ctx context.Context, live []*key) error {
	secrets := r.opts.Secrets
	if secrets.Current == nil {
		return nil
	}
	for _, k := range live {
		before := secrets.Of(k.record)
		if before == WithCurrent {
			continue
		}
		pkcs8, err := secrets.open(k.record)
		if err != nil {
			return err
		}
		err = r.store.ReplaceKey(ctx, k.record.ID, k.record.PrivateKey, secrets.seal(k.record, pkcs8))
		switch {
		case errors.Is(err, ErrConflict):
		case err != nil:
			return fmt.Errorf("keys: encrypt %q: %w", k.record.ID, err)
		case before == Plain:
			r.opts.Logger.WarnContext(ctx, "signing key was stored unencrypted and is now encrypted; replace it, because copies are not", slog.String("kid", k.record.ID))
		default:
			r.opts.Logger.InfoContext(ctx, "signing key encrypted with the current secret", slog.String("kid", k.record.ID))
		}
	}
	return nil
}

func records(all []*key) []Record {
	rs := make([]Record, len(all))
	for i, k := range all {
		rs[i] = k.record
	}
	return rs
}

// nextKey reports whether a key of the configured algorithm is due at now. It returns the
// generation and the time when the key starts signing.
func nextKey(all []Record, o Options, now time.Time) (generation int64, activeFrom time.Time, due bool) {
	own := slices.DeleteFunc(slices.Clone(all), func(r Record) bool { return r.Algorithm != o.Algorithm })
	if len(own) == 0 {
		return 1, now, true // nothing can be signed without a key
	}
	last := slices.MaxFunc(own, func(a, b Record) int { return cmp.Compare(a.Generation, b.Generation) })
	if now.Before(last.ActiveFrom.Add(o.RotateEvery - PublishAhead(o.RotateEvery))) {
		return 0, time.Time{}, false
	}
	// Counted from now, not from when it was due, so the key is published ahead even after a long
	// pause.
	return last.Generation + 1, now.Add(PublishAhead(o.RotateEvery)), true
}

// retired reports whether every token that k can have signed has expired: its successor has signed
// for longer than a token lives, plus two checks, because an instance may not have noticed the
// successor at once. If k's algorithm is no longer configured here, another instance may still use
// it. That instance would replace the key after RotateEvery.
func retired(k Record, all []Record, o Options, now time.Time) bool {
	lastUse, found := time.Time{}, false
	for _, s := range all {
		if s.Algorithm == k.Algorithm && s.Generation > k.Generation && (!found || s.ActiveFrom.Before(lastUse)) {
			lastUse, found = s.ActiveFrom, true
		}
	}
	if !found && k.Algorithm != o.Algorithm {
		lastUse, found = k.ActiveFrom.Add(o.RotateEvery), true
	}
	return found && now.After(lastUse.Add(o.TokenLifetime+2*o.checkEvery()))
}
