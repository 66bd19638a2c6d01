package adminclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret/username"
)

// ErrNoUser means that the user does not exist.
var ErrNoUser = errors.New("the user does not exist")

// Accounts reads and changes clients and users through the API. A method returns the error that it
// names if the resource does not exist. All other refusals are *[ProblemError].
type Accounts struct {
	Client *Client
	// Reason goes into the audit trail. Confirmed is the client or user that the caller agreed to
	// change even if the change locks operators out.
	Reason, Confirmed string
	// Warn is called with warnings about a change that was made. Nil: not called.
	Warn func(message string)
}

// warn warns if limits lock out a client that was registered or changed.
func (a *Accounts) warn(doc *adminapi.Registration) {
	if doc.LockedOut != "" && a.Warn != nil {
		a.Warn("Limits in force lock this client out of the admin API: " + doc.LockedOut)
	}
}

// get reads a resource. absent is the error for status 404.
func (a *Accounts) get(ctx context.Context, path string, query url.Values, out any, absent error) (etag string, err error) {
	etag, err = a.Client.Get(ctx, path, query, out)
	return etag, known(err, absent)
}

// change makes a change of what has that ETag, or with * of what exists. in is the request body, or
// nil; absent is the error for status 404.
func (a *Accounts) change(ctx context.Context, method, path, etag string, in, out any, absent error) error {
	_, err := a.Client.Change(ctx, Change{Method: method, Path: path, ETag: etag, Reason: a.Reason, Confirmed: a.Confirmed, Body: in}, out)
	var p *ProblemError
	if errors.As(err, &p) && p.Status == http.StatusServiceUnavailable && p.RetryAfter == 0 {
		return &UnansweredError{p}
	}
	return known(err, absent)
}

// known returns absent for the refusal of a resource that does not exist.
func known(err, absent error) error {
	var p *ProblemError
	if errors.As(err, &p) && p.NotFound() && p.Type != "" && absent != nil {
		return absent
	}
	return err
}

// UnansweredError is the refusal of a change that may have been made, because the store neither
// confirmed nor refused it.
type UnansweredError struct{ *ProblemError }

// Unwrap returns the refusal.
func (e *UnansweredError) Unwrap() error { return e.ProblemError }

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

// CreateClient registers a client and returns it as stored, with its secret if it is confidential and
// has no digest yet.
func (a *Accounts) CreateClient(ctx context.Context, c clientcfg.Client) (clientcfg.Client, string, error) {
	in := adminapi.NewClient{Metadata: c.Metadata()}
	if !c.SecretDigest.IsZero() {
		in.SecretHash = c.SecretDigest.String()
	}
	var out adminapi.Registered
	if err := a.change(ctx, http.MethodPost, "/clients", "", in, &out, nil); err != nil {
		return c, "", err
	}
	a.warn(&out.Registration)
	return stored(&out.Registration), out.Secret, nil
}

func (a *Accounts) read(ctx context.Context, id string) (doc adminapi.Registration, etag string, err error) {
	etag, err = a.get(ctx, clientPath(id), nil, &doc, clientcfg.ErrNotFound)
	return doc, etag, err
}

// FindClient returns the client with that ID, and its valid secrets, newest first. Errors:
// [clientcfg.ErrNotFound].
func (a *Accounts) FindClient(ctx context.Context, id string) (clientcfg.Client, []registry.Secret, error) {
	doc, _, err := a.read(ctx, id)
	if err != nil {
		return clientcfg.Client{}, nil, err
	}
	return stored(&doc), doc.Secrets, nil
}

// pageSize is the number of items read at once.
const pageSize = 1000

// Listing is a list of clients, ordered by ID.
type Listing struct {
	Clients    []clientcfg.Client
	Unreadable []registry.Unreadable
}

// Clients returns the clients that match the filter, and the unreadable clients, which only the ID
// can be compared with.
func (a *Accounts) Clients(ctx context.Context, filter registry.Filter) (l Listing, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageSize)}, "prefix": {filter.Prefix}, "grant_type": {string(filter.Grant)}, "label": filter.Labels}
	for {
		var page adminapi.Clients
		if _, err := a.get(ctx, "/clients", query, &page, nil); err != nil {
			return l, err
		}
		for i := range page.Clients {
			if doc := &page.Clients[i]; doc.IssuedAt == 0 && doc.Meta.Version == 0 { // registered with the server behind a gateway
				continue
			}
			l.Clients = append(l.Clients, stored(&page.Clients[i].Registration))
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

// ChangeClient changes the metadata of a client and returns it. If others change the client at the
// same time, edit is called again with the newly stored client. Errors: errors of edit,
// [clientcfg.ErrNotFound].
func (a *Accounts) ChangeClient(ctx context.Context, id string, edit func(c *clientcfg.Client) error) (c clientcfg.Client, err error) {
	for range mostEdits {
		var doc adminapi.Registration
		var etag string
		if doc, etag, err = a.read(ctx, id); err != nil {
			return c, err
		}
		c = stored(&doc)
		if err = edit(&c); err != nil {
			return c, err
		}
		var out adminapi.Registration
		err = a.change(ctx, http.MethodPut, clientPath(id), etag, c.Metadata(), &out, clientcfg.ErrNotFound)
		var p *ProblemError
		if !errors.As(err, &p) || !p.Stale() {
			a.warn(&out)
			return stored(&out), err
		}
	}
	return c, err
}

// LimitsOf returns what operators have set for a client, registered or not.
func (a *Accounts) LimitsOf(ctx context.Context, id string) (l registry.Limits, err error) {
	_, err = a.get(ctx, clientPath(id, "/limits"), nil, &l, nil)
	return l, err
}

// DeleteClient removes a client, readable or not. Errors: [clientcfg.ErrNotFound].
func (a *Accounts) DeleteClient(ctx context.Context, id string) error {
	return a.change(ctx, http.MethodDelete, clientPath(id), "*", nil, nil, clientcfg.ErrNotFound)
}

// RevokeClient invalidates everything issued to a client until now, and returns the client. Errors:
// [clientcfg.ErrNotFound].
func (a *Accounts) RevokeClient(ctx context.Context, id string) (clientcfg.Client, error) {
	var out adminapi.Registration
	err := a.change(ctx, http.MethodPost, clientPath(id, "/revoke"), "*", nil, &out, clientcfg.ErrNotFound)
	return stored(&out), err
}

// AddSecret gives a confidential client a new secret, and returns both. n says what happens to the
// previous one. Errors: [clientcfg.ErrNotFound].
func (a *Accounts) AddSecret(ctx context.Context, id string, n registry.NewSecret) (clientcfg.Client, string, error) {
	var out adminapi.Registered
	err := a.change(ctx, http.MethodPost, clientPath(id, "/secrets"), "*", n, &out, clientcfg.ErrNotFound)
	return stored(&out.Registration), out.Secret, err
}

// RetireSecret ends a secret early. You cannot end the newest one. Errors: [registry.ErrNoSecret].
func (a *Accounts) RetireSecret(ctx context.Context, id, secretID string) error {
	return a.change(ctx, http.MethodDelete, clientPath(id, "/secrets/", adminapi.Escape(secretID)), "*", nil, nil, registry.ErrNoSecret)
}

func userPath(name string, more ...string) string {
	return "/users/" + adminapi.Escape(name) + strings.Join(more, "")
}

// user calls the API about a user.
func (a *Accounts) user(ctx context.Context, method, path string, in any) (u registry.User, err error) {
	err = a.change(ctx, method, path, "*", in, &u, ErrNoUser)
	return u, err
}

// Users returns a page of users: at most limit users with names that start with prefix and are
// greater than after, ordered by name.
func (a *Accounts) Users(ctx context.Context, prefix, after string, limit int) ([]registry.User, error) {
	var out adminapi.Users
	query := url.Values{"limit": {strconv.Itoa(min(limit, pageSize))}, "prefix": {prefix}, "after": {after}}
	_, err := a.get(ctx, "/users", query, &out, nil)
	return out.Users, err
}

// User returns the user with that name, in any spelling that works for signing in. Errors:
// [ErrNoUser].
func (a *Accounts) User(ctx context.Context, name string) (u registry.User, err error) {
	_, err = a.get(ctx, userPath(name), nil, &u, ErrNoUser)
	return u, err
}

// CreateUser stores a user under the canonical form of the name.
func (a *Accounts) CreateUser(ctx context.Context, n registry.NewUser) (u registry.User, err error) {
	err = a.change(ctx, http.MethodPost, "/users", "", n, &u, nil)
	return u, err
}

// SetPassword replaces a user's password and revokes the user. Errors: [ErrNoUser].
func (a *Accounts) SetPassword(ctx context.Context, name, password string) (registry.User, error) {
	return a.user(ctx, http.MethodPut, userPath(name, "/password"), adminapi.NewPassword{Password: password})
}

// RevokeUser invalidates everything from a user's sign-ins until now. Errors: [ErrNoUser].
func (a *Accounts) RevokeUser(ctx context.Context, name string) (registry.User, error) {
	return a.user(ctx, http.MethodPost, userPath(name, "/revoke"), nil)
}

// UnlockUser ends a user's row of wrong passwords. Errors: [ErrNoUser].
func (a *Accounts) UnlockUser(ctx context.Context, name string) (registry.User, error) {
	return a.user(ctx, http.MethodPost, userPath(name, "/unlock"), nil)
}

// SetOperator sets a user's access to the admin API. Errors: [ErrNoUser].
func (a *Accounts) SetOperator(ctx context.Context, name string, access clientcfg.Access) (registry.User, error) {
	patch := map[string]any{"operator": access}
	if access == clientcfg.NoAccess {
		patch["operator"] = nil
	}
	return a.user(ctx, http.MethodPatch, userPath(name), patch)
}

// DeleteUser removes a user, readable or not, and returns the name. Errors: [ErrNoUser].
func (a *Accounts) DeleteUser(ctx context.Context, name string) (string, error) {
	return username.Stored(name), a.change(ctx, http.MethodDelete, userPath(name), "*", nil, nil, ErrNoUser)
}

// Sessions returns a user's valid sessions, newest first. Errors: [ErrNoUser].
func (a *Accounts) Sessions(ctx context.Context, name string) ([]registry.Session, error) {
	var out adminapi.Sessions
	_, err := a.get(ctx, userPath(name, "/sessions"), nil, &out, ErrNoUser)
	return out.Sessions, err
}

// Families returns a user's refreshable sign-ins, most recently refreshed first. Errors:
// [ErrNoUser].
func (a *Accounts) Families(ctx context.Context, name string) ([]registry.Family, error) {
	var out adminapi.Families
	_, err := a.get(ctx, userPath(name, "/families"), nil, &out, ErrNoUser)
	return out.Families, err
}

// EndSessions ends the session with that ID, or all sessions of a user if id is empty, and returns
// how many. Errors: [registry.ErrNoSession], [ErrNoUser].
func (a *Accounts) EndSessions(ctx context.Context, name, id string) (int, error) {
	return a.end(ctx, userPath(name, "/sessions"), id, registry.ErrNoSession)
}

// RevokeFamilies revokes the family with that ID, or all families of a user if id is empty, and
// returns how many. Errors: [registry.ErrNoFamily], [ErrNoUser].
func (a *Accounts) RevokeFamilies(ctx context.Context, name, id string) (int, error) {
	return a.end(ctx, userPath(name, "/families"), id, registry.ErrNoFamily)
}

// Consents returns a user's valid consents, ordered by client. Errors: [ErrNoUser].
func (a *Accounts) Consents(ctx context.Context, name string) ([]registry.Consent, error) {
	var out adminapi.Consents
	_, err := a.get(ctx, userPath(name, "/consents"), nil, &out, ErrNoUser)
	return out.Consents, err
}

// WithdrawConsent ends a user's consent to a client and everything issued under it. Errors:
// [registry.ErrNoConsent], also for a missing user.
func (a *Accounts) WithdrawConsent(ctx context.Context, name, clientID string) error {
	return a.change(ctx, http.MethodDelete, userPath(name, "/consents/", adminapi.Escape(clientID)), "*", nil, nil, registry.ErrNoConsent)
}

func (a *Accounts) end(ctx context.Context, path, id string, absent error) (int, error) {
	if id == "" {
		absent = ErrNoUser
	} else {
		path += "/" + adminapi.Escape(id)
	}
	var out adminapi.Ended
	err := a.change(ctx, http.MethodDelete, path, "*", nil, &out, absent)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w; the server continues; list again to see what is left", err)
	}
	return out.Ended, err
}
