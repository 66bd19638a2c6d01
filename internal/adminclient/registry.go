package adminclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/registry"
)

// Registry changes clients and users through the API. It has the methods of [registry.Registry] and
// returns the same errors for the cases that they name. All other errors are *[ProblemError].
type Registry struct {
	Client *Client
	// Reason goes into the audit trail. Confirmed is the client or user that the caller agreed to
	// change even if the change locks operators out.
	Reason, Confirmed string
	// Timeout limits each call; 0 means no limit.
	Timeout time.Duration
	// Warn is called with warnings about a change that was made. Nil: not called.
	Warn func(message string)
}

// warn warns if limits lock out a client that was registered or changed.
func (r *Registry) warn(doc *adminapi.Registration) {
	if doc.LockedOut != "" && r.Warn != nil {
		r.Warn("Limits in force lock this client out of the admin API: " + doc.LockedOut)
	}
}

// do calls the API. in is the request body, or nil; absent is the error for status 404.
func (r *Registry) do(ctx context.Context, method, path, etag string, query url.Values, in, out any, absent error) (string, error) {
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	if query == nil {
		query = url.Values{}
	}
	if method != http.MethodGet {
		for name, v := range map[string]string{"reason": r.Reason, "confirm": r.Confirmed} {
			if v != "" {
				query.Set(name, v)
			}
		}
	}
	header := http.Header{}
	if etag != "" {
		header.Set("If-Match", etag)
	}
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return "", fmt.Errorf("adminclient: encode: %w", err)
		}
		header.Set("Content-Type", "application/json")
	}
	etag, err := r.Client.call(ctx, method, path, query, header, body, out)
	var p *ProblemError
	if errors.As(err, &p) && p.NotFound() && p.Type != "" && absent != nil {
		return "", absent
	}
	return etag, err
}

func clientPath(id string, more ...string) string {
	return "/clients/" + adminapi.Escape(id) + strings.Join(more, "")
}

// stored returns the client in a response, with the fields that the API shows.
func stored(doc *adminapi.Registration) clientcfg.Client {
	c := clientcfg.Client{CreatedAt: time.Unix(doc.IssuedAt, 0).UTC(), Version: doc.Meta.Version}
	_ = doc.Apply(&c) // the server's values are valid, or from a newer release
	for _, s := range doc.Secrets {
		if s.Current {
			c.SecretUsed = s.Used
		} else {
			c.Former.Until, c.Former.Used = s.Until, s.Used
		}
	}
	return c
}

// CreateClient implements [registry.Registry.CreateClient].
func (r *Registry) CreateClient(ctx context.Context, c clientcfg.Client) (clientcfg.Client, string, error) {
	in := struct {
		clientcfg.Metadata
		SecretHash string `json:"client_secret_hash,omitempty"`
	}{Metadata: c.Metadata()}
	if !c.SecretDigest.IsZero() {
		in.SecretHash = c.SecretDigest.String()
	}
	var out adminapi.Registered
	if _, err := r.do(ctx, http.MethodPost, "/clients", "", nil, in, &out, nil); err != nil {
		return c, "", err
	}
	r.warn(&out.Registration)
	return stored(&out.Registration), out.Secret, nil
}

func (r *Registry) read(ctx context.Context, id string) (c clientcfg.Client, etag string, err error) {
	var out adminapi.Registration
	etag, err = r.do(ctx, http.MethodGet, clientPath(id), "", nil, nil, &out, clientcfg.ErrNotFound)
	if err != nil {
		return c, "", err
	}
	return stored(&out), etag, nil
}

// FindClient implements [registry.Registry.FindClient].
func (r *Registry) FindClient(ctx context.Context, id string) (clientcfg.Client, error) {
	c, _, err := r.read(ctx, id)
	return c, err
}

// Secrets returns the valid secrets of a client, newest first.
func (r *Registry) Secrets(ctx context.Context, id string) ([]registry.Secret, error) {
	var out adminapi.Secrets
	_, err := r.do(ctx, http.MethodGet, clientPath(id, "/secrets"), "", nil, nil, &out, clientcfg.ErrNotFound)
	return out.Secrets, err
}

// pageSize is the number of items read at once.
const pageSize = 1000

// Clients implements [registry.Registry.Clients].
func (r *Registry) Clients(ctx context.Context, filter registry.Filter) (l registry.Listing, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "prefix": {filter.Prefix}, "grant_type": {string(filter.Grant)}, "label": filter.Labels}
	for {
		var page adminapi.Clients
		if _, err := r.do(ctx, http.MethodGet, "/clients", "", query, nil, &page, nil); err != nil {
			return l, err
		}
		for i := range page.Clients {
			if page.Clients[i].IssuedAt == 0 { // registered with the server behind a gateway
				continue
			}
			c := clientcfg.Client{CreatedAt: time.Unix(page.Clients[i].IssuedAt, 0).UTC()}
			_ = page.Clients[i].Apply(&c)
			l.Clients = append(l.Clients, c)
		}
		if page.Next == "" {
			l.Unreadable = page.Unreadable
			return l, nil
		}
		query.Set("after", page.Next)
	}
}

// mostEdits is the maximum number of attempts of a change while other changes get in first.
const mostEdits = 10

// ChangeClient implements [registry.Registry.ChangeClient].
func (r *Registry) ChangeClient(ctx context.Context, id string, edit func(c *clientcfg.Client) error) (c clientcfg.Client, err error) {
	for range mostEdits {
		var etag string
		if c, etag, err = r.read(ctx, id); err != nil {
			return c, err
		}
		if err = edit(&c); err != nil {
			return c, err
		}
		var out adminapi.Registration
		_, err = r.do(ctx, http.MethodPut, clientPath(id), etag, nil, c.Metadata(), &out, clientcfg.ErrNotFound)
		var p *ProblemError
		if !errors.As(err, &p) || !p.Stale() {
			r.warn(&out)
			return stored(&out), err
		}
	}
	return c, err
}

// LimitsOf implements [registry.Registry.LimitsOf], but returns [clientcfg.ErrNotFound] for a
// missing client.
func (r *Registry) LimitsOf(ctx context.Context, id string) (l registry.Limits, err error) {
	get := func(path string, query url.Values, out any) error {
		_, err := r.do(ctx, http.MethodGet, path, "", query, nil, out, clientcfg.ErrNotFound)
		return err
	}
	var own adminapi.PolicyView
	policy := "/policies/" + adminapi.Escape(id)
	if err := get(policy, nil, &own); err != nil {
		return l, err
	}
	l.Policy, l.Overrides = own.Meta.Source == "api", own.Effective.Overrides
	if l.Overrides > 0 {
		var page adminapi.Overrides
		if err := get(policy+"/users", url.Values{"limit": {strconv.Itoa(registry.NamedOverrides)}}, &page); err != nil {
			return l, err
		}
		for _, o := range page.Overrides {
			l.Users = append(l.Users, o.Username)
		}
	}
	err = get("/candidates/"+adminapi.Escape(id), nil, nil)
	l.Candidate = err == nil
	if err != nil && !errors.Is(err, clientcfg.ErrNotFound) {
		return l, err
	}
	var page adminapi.Bans
	query := url.Values{"client_id": {id}, "ended": {"true"}, "limit": {strconv.Itoa(registry.NamedOverrides)}}
	if err = get("/bans", query, &page); err != nil {
		return l, err
	}
	for i := range page.Bans {
		username := ""
		if name := page.Bans[i].Username; name != nil {
			username = *name
		}
		l.Banned = append(l.Banned, username)
	}
	l.MoreBanned = page.Next != ""
	return l, nil
}

// DeleteClient implements [registry.Registry.DeleteClient].
func (r *Registry) DeleteClient(ctx context.Context, id string) error {
	_, err := r.do(ctx, http.MethodDelete, clientPath(id), "*", nil, nil, nil, clientcfg.ErrNotFound)
	return err
}

// RevokeClient implements [registry.Registry.RevokeClient].
func (r *Registry) RevokeClient(ctx context.Context, id string) (clientcfg.Client, error) {
	var out adminapi.Registration
	_, err := r.do(ctx, http.MethodPost, clientPath(id, "/revoke"), "", nil, nil, &out, clientcfg.ErrNotFound)
	return stored(&out), err
}

// AddSecret implements [registry.Registry.AddSecret].
func (r *Registry) AddSecret(ctx context.Context, id string, rotation registry.Rotation) (clientcfg.Client, string, error) {
	in := struct {
		Overlap string `json:"overlap"`
		Revoke  bool   `json:"revoke"`
	}{rotation.Overlap.String(), rotation.Revoke}
	var out adminapi.Registered
	_, err := r.do(ctx, http.MethodPost, clientPath(id, "/secrets"), "", nil, in, &out, clientcfg.ErrNotFound)
	return stored(&out.Registration), out.Secret, err
}

// RetireSecret implements [registry.Registry.RetireSecret].
func (r *Registry) RetireSecret(ctx context.Context, id, secretID string) error {
	_, err := r.do(ctx, http.MethodDelete, clientPath(id, "/secrets/", adminapi.Escape(secretID)), "", nil, nil, nil, registry.ErrNoSecret)
	return err
}

func userPath(name string, more ...string) string {
	return "/users/" + adminapi.Escape(name) + strings.Join(more, "")
}

// user calls the API about a user.
func (r *Registry) user(ctx context.Context, method, path string, in any) (u registry.User, err error) {
	_, err = r.do(ctx, method, path, "*", nil, in, &u, grants.ErrNotFound)
	return u, err
}

// Users implements [registry.Registry.Users].
func (r *Registry) Users(ctx context.Context, after string, limit int) ([]registry.User, error) {
	var out adminapi.Users
	query := url.Values{"limit": {strconv.Itoa(min(limit, pageSize))}, "after": {after}}
	_, err := r.do(ctx, http.MethodGet, "/users", "", query, nil, &out, nil)
	return out.Users, err
}

// User implements [registry.Registry.User].
func (r *Registry) User(ctx context.Context, name string) (u registry.User, err error) {
	_, err = r.do(ctx, http.MethodGet, userPath(name), "", nil, nil, &u, grants.ErrNotFound)
	return u, err
}

// CreateUser implements [registry.Registry.CreateUser].
func (r *Registry) CreateUser(ctx context.Context, n registry.NewUser) (u registry.User, err error) {
	in := map[string]any{"username": n.Name}
	for name, v := range map[string]string{"password": n.Password, "password_hash": n.Hash, "operator": string(n.Operator)} {
		if v != "" {
			in[name] = v
		}
	}
	_, err = r.do(ctx, http.MethodPost, "/users", "", nil, in, &u, nil)
	return u, err
}

// SetPassword implements [registry.Registry.SetPassword].
func (r *Registry) SetPassword(ctx context.Context, name, password string) (registry.User, error) {
	return r.user(ctx, http.MethodPut, userPath(name, "/password"), map[string]string{"password": password})
}

// RevokeUser implements [registry.Registry.RevokeUser].
func (r *Registry) RevokeUser(ctx context.Context, name string) (registry.User, error) {
	return r.user(ctx, http.MethodPost, userPath(name, "/revoke"), nil)
}

// UnlockUser implements [registry.Registry.UnlockUser].
func (r *Registry) UnlockUser(ctx context.Context, name string) (registry.User, error) {
	return r.user(ctx, http.MethodPost, userPath(name, "/unlock"), nil)
}

// SetOperator implements [registry.Registry.SetOperator].
func (r *Registry) SetOperator(ctx context.Context, name string, access clientcfg.Access) (registry.User, error) {
	patch := map[string]any{"operator": access}
	if access == clientcfg.NoAccess {
		patch["operator"] = nil
	}
	return r.user(ctx, http.MethodPatch, userPath(name), patch)
}

// DeleteUser implements [registry.Registry.DeleteUser].
func (r *Registry) DeleteUser(ctx context.Context, name string) (string, error) {
	_, err := r.do(ctx, http.MethodDelete, userPath(name), "*", nil, nil, nil, grants.ErrNotFound)
	return name, err
}

// Sessions implements [registry.Registry.Sessions].
func (r *Registry) Sessions(ctx context.Context, name string) (string, []registry.Session, error) {
	var out adminapi.Sessions
	_, err := r.do(ctx, http.MethodGet, userPath(name, "/sessions"), "", nil, nil, &out, grants.ErrNotFound)
	return out.Username, out.Sessions, err
}

// Families implements [registry.Registry.Families].
func (r *Registry) Families(ctx context.Context, name string) (string, []registry.Family, error) {
	var out adminapi.Families
	_, err := r.do(ctx, http.MethodGet, userPath(name, "/families"), "", nil, nil, &out, grants.ErrNotFound)
	return out.Username, out.Families, err
}

// EndSessions implements [registry.Registry.EndSessions].
func (r *Registry) EndSessions(ctx context.Context, name, id string) (int, error) {
	return r.end(ctx, userPath(name, "/sessions"), id, registry.ErrNoSession)
}

// RevokeFamilies implements [registry.Registry.RevokeFamilies].
func (r *Registry) RevokeFamilies(ctx context.Context, name, id string) (int, error) {
	return r.end(ctx, userPath(name, "/families"), id, registry.ErrNoFamily)
}

// Consents implements [registry.Registry.Consents].
func (r *Registry) Consents(ctx context.Context, name string) (string, []registry.Consent, error) {
	var out adminapi.Consents
	_, err := r.do(ctx, http.MethodGet, userPath(name, "/consents"), "", nil, nil, &out, grants.ErrNotFound)
	return out.Username, out.Consents, err
}

// WithdrawConsent implements [registry.Registry.WithdrawConsent], but returns
// [registry.ErrNoConsent] for a missing user.
func (r *Registry) WithdrawConsent(ctx context.Context, name, clientID string) error {
	_, err := r.do(ctx, http.MethodDelete, userPath(name, "/consents/", adminapi.Escape(clientID)), "", nil, nil, nil, registry.ErrNoConsent)
	return err
}

func (r *Registry) end(ctx context.Context, path, id string, absent error) (int, error) {
	if id == "" {
		absent = grants.ErrNotFound
	} else {
		path += "/" + adminapi.Escape(id)
	}
	var out adminapi.Ended
	_, err := r.do(ctx, http.MethodDelete, path, "", nil, nil, &out, absent)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w; the server ends what it has begun to end: the list shows what is left", err)
	}
	return out.Ended, err
}
