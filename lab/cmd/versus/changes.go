package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/servers"
)

// Two instances share a database. Every 100 ms something is changed at the first, of each kind in turn, and the
// second is asked until it acts on it.
const (
	changeEvery = 100 * time.Millisecond
	askEvery    = 10 * time.Millisecond
	people      = 20 // and clients
)

func prepareChanges(ctx context.Context, s *side) error {
	st, err := s.newDatabase(ctx, "changes")
	if err != nil {
		return err
	}
	if err := register(ctx, st); err != nil {
		return err
	}
	for k := range people {
		err := errors.Join(
			st.CreateUser(ctx, fmt.Sprint("user", k), password),
			st.CreateClient(ctx, fmt.Sprint("app", k), "--grant=client_credentials", "--scope=read"))
		if err != nil {
			return err
		}
	}
	return nil
}

func measureChanges(ctx context.Context, s *side) error {
	return s.serving(ctx, "changes", func(first *instance) error {
		err := first.Administer(ctx, operator, "limits", "set", shop, "--client=1000000/60s", "--yes")
		if err != nil {
			return err
		}
		return s.serving(ctx, "changes", func(second *instance) error {
			return (&follower{side: s, first: first, second: second, took: map[string][]time.Duration{}}).run(ctx)
		})
	})
}

// follower measures how soon a second instance applies changes made at the first.
type follower struct {
	*side
	first, second *instance

	mu   sync.Mutex
	took map[string][]time.Duration // by kind
	errs []error
	key  sync.Mutex // one change of keys at a time: an instance may skip one that another follows at once
}

// change makes change number n at the first instance, and returns how to ask the second whether it acts on it.
type change func(ctx context.Context, n int) (acts func() (bool, error), err error)

func (f *follower) run(ctx context.Context) error {
	kinds := []struct {
		name   string
		change change
	}{{"client", f.client}, {"user", f.user}, {"policy", f.policy}, {"key", f.rotate}, {"revocation", f.revoke}}
	tick, all := time.NewTicker(changeEvery), sync.WaitGroup{}
	defer tick.Stop()
	for n := range f.changes {
		<-tick.C
		kind, unlock := kinds[n%len(kinds)], func() {}
		if kind.name == "key" {
			if unlock = f.key.Unlock; !f.key.TryLock() {
				kind, unlock = kinds[0], func() {}
			}
		}
		all.Go(func() {
			defer unlock()
			took, err := follow(ctx, n, kind.change)
			f.mu.Lock()
			defer f.mu.Unlock()
			if err != nil {
				f.errs = append(f.errs, fmt.Errorf("%s: %w", kind.name, err))
				return
			}
			f.took[kind.name] = append(f.took[kind.name], took)
		})
	}
	all.Wait()
	for _, kind := range kinds {
		sorted := slices.Sorted(slices.Values(f.took[kind.name]))
		what := fmt.Sprintf("MongoDB, 10 changes a second: another instance follows a %s, ms", kind.name)
		f.note(what+", median", float64(load.Percentile(sorted, 50).Milliseconds()))
		f.note(fmt.Sprintf("%s, p99 of %d", what, len(sorted)), float64(load.Percentile(sorted, 99).Milliseconds()))
	}
	if len(f.errs) > 5 {
		f.errs = append(f.errs[:5], fmt.Errorf("and %d more", len(f.errs)-5))
	}
	return errors.Join(f.errs...)
}

// follow makes a change, and returns how long the second instance takes to act on it.
func follow(ctx context.Context, n int, change change) (time.Duration, error) {
	acts, err := change(ctx, n)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = servers.Until(ctx, askEvery, acts)
	return time.Since(began), err
}

// operate changes something through the admin API. Its token may be of a key that was withdrawn meanwhile.
func (i *instance) operate(ctx context.Context, method, path, body string) error {
	var last load.Answer
	err := servers.Until(ctx, 2*askEvery, func() (bool, error) {
		t, err := i.Token(ctx, operator, servers.Own())
		if err != nil {
			return false, err
		}
		last, err = i.Change(ctx, t.AccessToken, method, path, body)
		again := last.Status == http.StatusUnauthorized || last.Status == http.StatusPreconditionFailed
		return !again, err
	})
	if err == nil && last.Status/100 != 2 {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, last.Status, last.Body)
	}
	return err
}

// client adds a scope to a client, which keeps the scopes of its last changes.
func (f *follower) client(ctx context.Context, n int) (func() (bool, error), error) {
	name, scopes := fmt.Sprint("app", n%people), fmt.Sprint("s", n)
	for k := n - people; k > max(n-5*people, 0); k -= people {
		scopes += fmt.Sprint(" s", k)
	}
	form := servers.Own()
	form.Set("scope", fmt.Sprint("s", n))
	return func() (bool, error) {
		a, err := f.second.Post(ctx, "/token", name, form)
		return a.Status == http.StatusOK, err
	}, f.first.operate(ctx, http.MethodPatch, "/clients/"+name, fmt.Sprintf(`{"scope": %q}`, scopes))
}

// policy gives a client another limit.
func (f *follower) policy(ctx context.Context, n int) (func() (bool, error), error) {
	limit := 1_000_000 + n
	return func() (bool, error) {
		a, err := f.second.Post(ctx, "/token", shop, servers.Own())
		_, quota, _ := strings.Cut(a.Header.Get("RateLimit-Policy"), ";q=")
		quota, _, _ = strings.Cut(quota, ";")
		now := 0
		_, _ = fmt.Sscan(quota, &now)
		return now >= limit, err
	}, f.first.operate(ctx, http.MethodPatch, "/policies/"+shop, fmt.Sprintf(`{"mode": "enforce", "client": [{"requests": %d, "window": "60s"}]}`, limit))
}

// user and revoke end what a refresh token of the second instance is worth.
func (f *follower) user(ctx context.Context, n int) (func() (bool, error), error) {
	name := fmt.Sprint("user", n/5%people)
	return f.ended(ctx, name, func(string) error { return f.first.operate(ctx, http.MethodPost, "/users/"+name+"/revoke", "") })
}

func (f *follower) revoke(ctx context.Context, _ int) (func() (bool, error), error) {
	return f.ended(ctx, user, func(token string) error {
		_, err := f.first.Post(ctx, "/revoke", legacy, url.Values{"token": {token}})
		return err
	})
}

func (f *follower) ended(ctx context.Context, name string, end func(token string) error) (func() (bool, error), error) {
	a, err := f.second.Token(ctx, legacy, servers.SignIn(name, password))
	if err == nil {
		err = end(a.RefreshToken)
	}
	return func() (bool, error) {
		answer, err := f.second.Post(ctx, "/introspect", legacy, url.Values{"token": {a.RefreshToken}})
		return bytes.Contains(answer.Body, []byte(`"active":false`)), err
	}, err
}

// rotate withdraws all keys but a new one.
func (f *follower) rotate(ctx context.Context, _ int) (func() (bool, error), error) {
	keys := func() (string, error) {
		a, err := f.second.Get(ctx, "/.well-known/jwks.json")
		return string(a.Body), err
	}
	before, err := keys()
	if err == nil {
		_, err = f.stores["changes"].Command(ctx, "", "keys", "rotate", "--now", "--yes")
	}
	return func() (bool, error) {
		now, err := keys()
		return now != before, err
	}, err
}
