package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Two instances share a database. Every 100 ms something is changed at the first, of each kind in turn, and the
// second is asked until it acts on it.
const (
	changesTotal = 600
	changeEvery  = 100 * time.Millisecond
	people       = 20 // and clients
	mostLate     = 20 * time.Second
)

func prepareChanges(ctx context.Context, s *side) (err error) {
	st, err := s.newDatabase(ctx)
	if s.stores["changes"] = st; err == nil {
		err = st.register(ctx)
	}
	for k := 0; k < people && err == nil; k++ {
		name := fmt.Sprint("user", k)
		if _, err = st.command(ctx, password, "user", "create", name, "--password-stdin"); err == nil {
			err = st.create(ctx, fmt.Sprint("app", k), "--grant=client_credentials", "--scope=read")
		}
	}
	return err
}

func measureChanges(ctx context.Context, s *side) error {
	return s.stores["changes"].serving(ctx, func(first *instance) error {
		_, err := first.execute(ctx, first.secrets["ops"], "limits", "set", "shop", "--client=1000000/60s", "--yes",
			"--server=http://"+first.admin, "--client-id=ops", "--client-secret-stdin", "--no-cache")
		if err != nil {
			return err
		}
		return s.stores["changes"].serving(ctx, func(second *instance) error {
			return (&follower{side: s, first: first, second: second, took: map[string][]float64{}}).run(ctx)
		})
	})
}

// follower measures how soon a second instance applies changes made at the first.
type follower struct {
	*side
	first, second *instance

	mu   sync.Mutex
	took map[string][]float64 // ms, by kind
	errs []error
	key  sync.Mutex // one change of keys at a time: an instance may skip one that another follows at once
}

func (f *follower) run(ctx context.Context) error {
	kinds := []struct {
		name   string
		change func(ctx context.Context, n int) (acts func() (bool, error), err error)
	}{{"client", f.client}, {"user", f.user}, {"policy", f.policy}, {"key", f.rotate}, {"revocation", f.revoke}}
	tick, all := time.NewTicker(changeEvery), sync.WaitGroup{}
	defer tick.Stop()
	for n := range changesTotal {
		<-tick.C
		kind := kinds[n%len(kinds)]
		if kind.name == "key" && !f.key.TryLock() {
			kind = kinds[0]
		}
		all.Go(func() {
			if kind.name == "key" {
				defer f.key.Unlock()
			}
			acts, err := kind.change(ctx, n)
			began, done := time.Now(), false
			for err == nil && !done {
				if done, err = acts(); !done && err == nil {
					if pause(ctx, 10*time.Millisecond); time.Since(began) > mostLate {
						err = errors.New("the other instance does not follow")
					}
				}
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if err != nil {
				f.errs = append(f.errs, fmt.Errorf("%s: %w", kind.name, err))
				return
			}
			f.took[kind.name] = append(f.took[kind.name], float64(time.Since(began).Milliseconds()))
		})
	}
	all.Wait()
	for _, kind := range kinds {
		sorted := slices.Sorted(slices.Values(f.took[kind.name]))
		f.note(fmt.Sprintf("MongoDB, 10 changes a second: another instance follows a %s, ms, median", kind.name), median(sorted))
		f.note(fmt.Sprintf("MongoDB, 10 changes a second: another instance follows a %s, ms, p99 of %d", kind.name, len(sorted)), append(sorted, math.NaN())[len(sorted)*99/100])
	}
	if len(f.errs) > 5 {
		f.errs = append(f.errs[:5], fmt.Errorf("and %d more", len(f.errs)-5))
	}
	return errors.Join(f.errs...)
}

// ask sends a form as a client, and returns the status, the header and the body.
func (i *instance) ask(ctx context.Context, path, client string, form url.Values) (int, http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+i.address+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, nil, nil, err
	}
	req.SetBasicAuth(client, i.secrets[client])
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return send(req)
}

func send(req *http.Request) (int, http.Header, []byte, error) {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return res.StatusCode, res.Header, body, err
}

// operate changes something through the admin API. Its token may be of a key that was withdrawn meanwhile.
func (i *instance) operate(ctx context.Context, method, path, body string) error {
	for try := 0; ; try++ {
		_, _, answer, err := i.ask(ctx, "/token", "ops", url.Values{"grant_type": {"client_credentials"}})
		_, rest, _ := bytes.Cut(answer, []byte(`"access_token":"`))
		token, _, _ := bytes.Cut(rest, []byte(`"`))
		req, failed := http.NewRequestWithContext(ctx, method, "http://"+i.admin+"/admin/v1"+path, strings.NewReader(body))
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+string(token))
		req.Header.Set("If-Match", "*")
		req.Header.Set("Content-Type", "application/merge-patch+json")
		status, _, answer, err := send(req)
		switch {
		case err != nil:
			return err
		case status/100 == 2:
			return nil
		case try == 50 || status != http.StatusUnauthorized && status != http.StatusPreconditionFailed:
			return fmt.Errorf("%s %s: status %d: %s", method, path, status, answer)
		}
		pause(ctx, 20*time.Millisecond)
	}
}

// client adds a scope to a client, which keeps the scopes of its last changes.
func (f *follower) client(ctx context.Context, n int) (func() (bool, error), error) {
	name, scopes := fmt.Sprint("app", n%people), fmt.Sprint("s", n)
	for k := n - people; k > max(n-5*people, 0); k -= people {
		scopes += fmt.Sprint(" s", k)
	}
	err := f.first.operate(ctx, http.MethodPatch, "/clients/"+name, fmt.Sprintf(`{"scope": %q}`, scopes))
	return func() (bool, error) {
		status, _, _, err := f.second.ask(ctx, "/token", name, url.Values{"grant_type": {"client_credentials"}, "scope": {fmt.Sprint("s", n)}})
		return status == http.StatusOK, err
	}, err
}

// policy gives a client another limit.
func (f *follower) policy(ctx context.Context, n int) (func() (bool, error), error) {
	limit := 1_000_000 + n
	err := f.first.operate(ctx, http.MethodPatch, "/policies/shop", fmt.Sprintf(`{"mode": "enforce", "client": [{"requests": %d, "window": "60s"}]}`, limit))
	return func() (bool, error) {
		_, header, _, err := f.second.ask(ctx, "/token", "shop", url.Values{"grant_type": {"client_credentials"}})
		_, quota, _ := strings.Cut(header.Get("RateLimit-Policy"), ";q=")
		now := 0
		_, _ = fmt.Sscan(strings.FieldsFunc(quota+";0", func(r rune) bool { return r == ';' })[0], &now)
		return now >= limit, err
	}, err
}

// user and revoke end what a refresh token of the second instance is worth.
func (f *follower) user(ctx context.Context, n int) (func() (bool, error), error) {
	name := fmt.Sprint("user", n/5%people)
	return f.ended(ctx, name, func(string) error { return f.first.operate(ctx, http.MethodPost, "/users/"+name+"/revoke", "") })
}

func (f *follower) revoke(ctx context.Context, _ int) (func() (bool, error), error) {
	return f.ended(ctx, user, func(token string) error {
		_, _, _, err := f.first.ask(ctx, "/revoke", "legacy", url.Values{"token": {token}})
		return err
	})
}

func (f *follower) ended(ctx context.Context, name string, end func(token string) error) (func() (bool, error), error) {
	_, _, body, err := f.second.ask(ctx, "/token", "legacy", url.Values{"grant_type": {"password"}, "username": {name}, "password": {password}})
	token := refreshToken(body)
	if err == nil && token == "" {
		err = fmt.Errorf("no refresh token: %s", body)
	}
	if err == nil {
		err = end(token)
	}
	return func() (bool, error) {
		_, _, body, err := f.second.ask(ctx, "/introspect", "legacy", url.Values{"token": {token}})
		return bytes.Contains(body, []byte(`"active":false`)), err
	}, err
}

// rotate withdraws all keys but a new one.
func (f *follower) rotate(ctx context.Context, _ int) (func() (bool, error), error) {
	keys := func() ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.second.address+"/.well-known/jwks.json", http.NoBody)
		if err != nil {
			return nil, err
		}
		_, _, body, err := send(req)
		return body, err
	}
	before, err := keys()
	if err == nil {
		_, err = f.stores["changes"].command(ctx, "", "keys", "rotate", "--now", "--yes")
	}
	return func() (bool, error) {
		now, err := keys()
		return !bytes.Equal(now, before), err
	}, err
}
