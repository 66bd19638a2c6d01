package keys

import (
	"context"
	"testing"
	"time"

	"oauth-server/internal/check"
)

// TestWithdrawnKey: after the next refresh every instance signs with the new key, and no longer
// accepts or publishes the old one.
func TestWithdrawnKey(t *testing.T) {
	for name, s := range map[string]Secrets{"in clear": {}, "encrypted": {Current: newTestSecret(t)}} {
		t.Run(name, func(t *testing.T) {
			store := &memStore{}
			rings := []*Ring{openRing(t, store, Options{Secrets: s}), openRing(t, store, Options{Secrets: s})}
			leaked, old := signedAt(t, rings[0], start), kid(t, rings[0], start)
			made, withdrawn, err := Replacement{Store: store, Secrets: s, Time: start.Add(time.Second)}.Now(t.Context())
			if err != nil || len(made) != 1 || len(withdrawn) != 1 || withdrawn[0].ID != old || made[0].Generation != 2 {
				t.Fatalf("Now() = %v, %v, %v", made, withdrawn, err)
			}
			for _, r := range rings {
				check.OK(t, r.Refresh(t.Context()))
				wantPublished(t, r, old, false)
				wantPublished(t, r, made[0].ID, true)
				// This holds even if the server's clock is behind the operator's.
				check.Equal(t, "the key that signs", kid(t, r, start), made[0].ID)
				_, err = r.Verify(leaked, start)
				check.ErrorIs(t, err, ErrInvalidToken)
			}
			wantGood(t, rings[1], signedAt(t, rings[0], start), start)
			for _, r := range store.stored() {
				check.Equal(t, "the new key is in clear", holdsPKCS8(r.PrivateKey), s == Secrets{})
			}
		})
	}
}

// TestNowWithdrawsAllKeys: it also withdraws keys of other algorithms, and the key published ahead.
func TestNowWithdrawsAllKeys(t *testing.T) {
	store := &memStore{}
	openRing(t, store, Options{Algorithm: RS256})
	r := openRing(t, store, Options{})
	check.OK(t, r.maintain(t.Context(), start.Add(89*day)))
	now := start.Add(89*day + time.Hour)
	made, withdrawn, err := Replacement{Store: store, Time: now}.Now(t.Context())
	if err != nil || len(withdrawn) != 3 {
		t.Fatalf("Now() = %v, %v", withdrawn, err)
	}
	type key struct {
		Algorithm  Algorithm
		Generation int64
		ActiveFrom time.Time
	}
	var got []key
	for _, k := range made {
		got = append(got, key{k.Algorithm, k.Generation, k.ActiveFrom})
	}
	check.Equal(t, "made", got, []key{{ES256, 3, now}, {RS256, 2, now}})
	check.Equal(t, "stored", store.stored(), made)
}

// TestNextKeyIsPublishedAhead: a replacement ahead of time invalidates nothing.
func TestNextKeyIsPublishedAhead(t *testing.T) {
	store := &memStore{}
	r := openRing(t, store, Options{})
	old, p := kid(t, r, start), Replacement{Store: store, Time: start.Add(time.Hour)}
	made, err := p.Ahead(t.Context(), PublishAhead(90*day))
	if err != nil || len(made) != 1 {
		t.Fatalf("Ahead() = %v, %v", made, err)
	}
	_, err = p.Ahead(t.Context(), day)
	check.ErrorIs(t, err, ErrAhead)
	check.OK(t, r.Refresh(t.Context()))
	wantPublished(t, r, made[0].ID, true)
	change := start.Add(time.Hour + day)
	check.Equal(t, "the key that signs before the change", kid(t, r, change.Add(-time.Nanosecond)), old)
	check.Equal(t, "the key that signs at the change", kid(t, r, change), made[0].ID)
	check.OK(t, r.maintain(t.Context(), change.Add(time.Hour+3*time.Minute)))
	wantGenerations(t, store, 2)
}

// TestReplacementIsStoredAsServersReadIt: a running server that could not read the new key would
// keep the old one forever.
func TestReplacementIsStoredAsServersReadIt(t *testing.T) {
	first, second := newTestSecret(t), newTestSecret(t)
	for name, tc := range map[string]struct {
		servers, given Secrets
		lost           bool
		want           Encryption // as the operator's secrets see it
		err            error
	}{
		"both in clear":               {Secrets{}, Secrets{}, false, Plain, nil},
		"the servers have no secret":  {Secrets{}, Secrets{Current: first}, false, Plain, nil},
		"the same secret":             {Secrets{Current: first}, Secrets{Current: first}, false, WithCurrent, nil},
		"a secret that comes":         {Secrets{Current: first}, Secrets{Current: second, Second: first}, false, WithSecond, nil},
		"no secret":                   {Secrets{Current: first}, Secrets{}, false, "", ErrNoSecret},
		"another secret":              {Secrets{Current: first}, Secrets{Current: second}, false, "", ErrOtherSecret},
		"the secret is lost":          {Secrets{Current: first}, Secrets{Current: second}, true, WithCurrent, nil},
		"lost, and there is no other": {Secrets{Current: first}, Secrets{}, true, "", ErrNoSecret},
	} {
		t.Run(name, func(t *testing.T) {
			store := &memStore{}
			r := openRing(t, store, Options{Secrets: tc.servers})
			before := store.stored()
			_, _, err := Replacement{Store: store, Secrets: tc.given, SecretLost: tc.lost, Time: start}.Now(t.Context())
			check.ErrorIs(t, err, tc.err)
			if err != nil {
				check.Equal(t, "the store has changed", store.stored(), before)
				return
			}
			wantEncryption(t, store, tc.given, tc.want)
			if err := r.Refresh(t.Context()); (err != nil) != tc.lost {
				t.Errorf("Refresh() of a server = %v", err)
			}
			openRing(t, store, Options{Secrets: tc.given})
		})
	}
}

// rivalStore lets a server add a key before the operator does.
type rivalStore struct {
	*memStore
	rival *Ring
	at    time.Time
}

func (s *rivalStore) AddKey(ctx context.Context, k Record) error {
	if rival := s.rival; rival != nil {
		s.rival = nil
		if err := rival.maintain(ctx, s.at); err != nil {
			return err
		}
	}
	return s.memStore.AddKey(ctx, k)
}

func TestReplacementBesideARotation(t *testing.T) {
	store, at := &memStore{}, start.Add(89*day)
	rival := openRing(t, store, Options{})
	made, withdrawn, err := Replacement{Store: &rivalStore{store, rival, at}, Time: at}.Now(t.Context())
	if err != nil || len(made) != 1 || made[0].Generation != 3 || len(withdrawn) != 2 {
		t.Fatalf("Now() = %v, %v, %v", made, withdrawn, err)
	}
	wantGenerations(t, store, 3)
}

// brokenStore fails to delete.
type brokenStore struct{ *memStore }

func (brokenStore) DeleteKey(context.Context, string) error { return errDown }

func TestReplacementCanBeRepeated(t *testing.T) {
	store := &memStore{}
	_, _, err := (Replacement{Store: store, Time: start}).Now(t.Context())
	check.ErrorIs(t, err, ErrNoKeys)
	openRing(t, store, Options{})
	_, _, err = (Replacement{Store: brokenStore{store}, Time: start}).Now(t.Context())
	check.ErrorIs(t, err, errDown)
	wantGenerations(t, store, 1, 2)
	if _, withdrawn, err := (Replacement{Store: store, Time: start}).Now(t.Context()); err != nil || len(withdrawn) != 2 {
		t.Errorf("Now() again = %v, %v", withdrawn, err)
	}
	wantGenerations(t, store, 3)
	store.setDown(true)
	_, err = (Replacement{Store: store, Time: start}).Ahead(t.Context(), day)
	check.ErrorIs(t, err, errDown)
}

// TestSecretThatTheOthersDoNotHave: a key encrypted with an unknown secret does not stop a running
// instance, which keeps its own keys.
func TestSecretThatTheOthersDoNotHave(t *testing.T) {
	store, s := &memStore{}, Secrets{Current: newTestSecret(t)}
	r := openRing(t, store, Options{Secrets: s})
	if _, err := (Replacement{Store: store, Secrets: Secrets{Current: newTestSecret(t)}, SecretLost: true, Time: start}).Ahead(t.Context(), day); err != nil {
		t.Fatal(err)
	}
	check.ErrorIs(t, r.Refresh(t.Context()), ErrOtherSecret)
	wantGood(t, r, signedAt(t, r, start), start)
}
