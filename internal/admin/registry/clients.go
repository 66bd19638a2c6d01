package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
	"oauth-server/internal/strict/fielderr"
)

// Errors for a name that the other kind already uses. The tokens of both would have the same sub.
var (
	ErrNameOfUser   = errors.New("a user has this name")
	ErrNameOfClient = errors.New("a client has this ID")
)

// CreateClient completes, checks and stores a registration. It returns the client, and its secret
// if it is confidential. Only the secret's digest is stored. A client that already has a digest
// keeps it, and no secret is returned. A client without grants gets the usual ones for its redirect
// URIs. It does not notice a user with the same name created at the same moment. Errors:
// [fielderr.Errors], [clientcfg.ErrExists], [ErrNameOfUser].
func (r *Service) CreateClient(ctx context.Context, c clientcfg.Client) (clientcfg.Client, string, error) {
	c, shown := r.complete(c)
	if err := r.checkClient(ctx, c); err != nil {
		return c, "", err
	}
	e, err := r.event(change{action: "create", target: clientcfg.ClientTarget(c.ID), after: c.Metadata()})
	if err == nil {
		err = r.o.Store.CreateClient(ctx, c, e)
	}
	if err != nil {
		return c, "", fmt.Errorf("create client %q: %w", c.ID, err)
	}
	return c, shown, nil
}

// complete returns the client as it will be stored, and its new secret if it needs one.
func (r *Service) complete(c clientcfg.Client) (_ clientcfg.Client, shown string) {
	if !c.Public && c.SecretDigest.IsZero() {
		shown = secret.New()
		c.SecretDigest = secret.DigestOf(shown)
	}
	if len(c.Grants) == 0 {
		c.Grants = clientcfg.UsualGrants(&c)
	}
	c.CreatedAt = r.o.Now().UTC().Truncate(time.Second)
	c.Version, c.Stamp = 1, secret.NewStamp()
	return c, shown
}

// ValidateClient checks a client to be registered, without comparing it with others. Errors:
// [fielderr.Errors].
func ValidateClient(c clientcfg.Client) error {
	if !c.Public && c.SecretDigest.IsZero() {
		c.SecretDigest = secret.DigestOf("") // stands for the secret to be made
	}
	if len(c.Grants) == 0 {
		c.Grants = clientcfg.UsualGrants(&c)
	}
	return c.Validate()
}

// checkClient returns why a new client cannot be stored.
func (r *Service) checkClient(ctx context.Context, c clientcfg.Client) error {
	if err := ValidateClient(c); err != nil {
		return err
	}
	switch _, err := r.o.Store.User(ctx, c.ID); {
	case err == nil || errors.Is(err, accounts.ErrUnreadableUser):
		return fmt.Errorf("create client %q: %w", c.ID, ErrNameOfUser)
	case !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("create client %q: %w", c.ID, err)
	}
	return nil
}

// FindClient returns the client with that ID. Errors: [clientcfg.ErrNotFound],
// [clientcfg.ErrUnreadableClient].
func (r *Service) FindClient(ctx context.Context, id string) (clientcfg.Client, error) {
	c, err := r.o.Store.Client(ctx, id)
	if err != nil {
		return c, fmt.Errorf("client %q: %w", id, err)
	}
	return c, nil
}

// Unreadable is a client that cannot be read. Only that client is not served.
type Unreadable struct {
	ClientID string `json:"client_id"`
	Why      string `json:"unreadable"`
}

// UnreadableOf returns the unreadable clients with IDs that start with prefix.
func UnreadableOf(d *clientcfg.Directory, prefix string) (list []Unreadable) {
	all := d.Unreadable()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(id, prefix) {
			list = append(list, Unreadable{id, all[id].Error()})
		}
	}
	return list
}

// ChangeClient changes the metadata of a client and returns it. If others change the client at the
// same time, edit is called again with the newly stored client. If edit changes nothing, nothing is
// stored or recorded. Errors: errors of edit, [fielderr.Errors], *[LockOutError],
// [clientcfg.ErrNotFound].
func (r *Service) ChangeClient(ctx context.Context, id string, edit func(c *clientcfg.Client) error) (clientcfg.Client, error) {
	return r.changeClient(ctx, id, func(c *clientcfg.Client, _ time.Time) (change, error) {
		before := c.Clone() // a copy, because edit may change list items in place
		if err := edit(c); err != nil {
			return change{}, err
		}
		if err := r.kept(&before, c); err != nil {
			return change{}, err
		}
		ch := change{action: "update", before: before.Metadata(), after: c.Metadata()}
		if reflect.DeepEqual(ch.before, ch.after) {
			return change{}, nil
		}
		err := r.mayLockOut(ctx, &ch, &before, c)
		return ch, err
	})
}

// kept returns an error for a change outside the metadata, or one that makes the client invalid.
func (r *Service) kept(before, after *clientcfg.Client) error {
	var errs fielderr.Errors
	if after.ID != before.ID {
		errs.Add("client_id", "%q is not that of the client, %q", after.ID, before.ID)
	}
	if after.Public != before.Public {
		errs.Add("token_endpoint_auth_method", "a client cannot gain or lose its secret; register another client")
		after.Public = before.Public // avoids follow-up errors
	}
	errs.AddUnreported(fielderr.Of(after.Validate()))
	return errs.Err()
}

// changeClient changes a client and returns it as stored. Concurrent changes by others are kept:
// edit is called again with the newly stored client. Errors: errors of edit,
// [clientcfg.ErrNotFound].
func (r *Service) changeClient(ctx context.Context, id string, edit func(c *clientcfg.Client, now time.Time) (change, error)) (clientcfg.Client, error) {
	now, err := r.o.Store.Now(ctx)
	for err == nil {
		var c clientcfg.Client
		if c, err = r.FindClient(ctx, id); err != nil {
			return c, err
		}
		var ch change
		if err = r.o.IfClient(&c); err == nil {
			ch, err = edit(&c, now)
		}
		if err != nil {
			ch.end()
			break
		}
		if ch.action == "" { // unchanged
			return c, nil
		}
		ch.target = clientcfg.ClientTarget(id)
		var e clientcfg.Event
		if e, err = r.event(ch); err == nil {
			err = r.o.Store.UpdateClient(ctx, c, e)
		}
		ch.end()
		if err == nil {
			c.Version++
			return c, nil
		}
		if errors.Is(err, clientcfg.ErrConflict) {
			err = ctx.Err()
		}
	}
	return clientcfg.Client{}, fmt.Errorf("client %q: %w", id, err)
}

// DeleteClient removes a client, readable or not. If others change the client at the same time, the
// newly stored client is checked again. Errors: *[LockOutError], [clientcfg.ErrNotFound].
func (r *Service) DeleteClient(ctx context.Context, id string) error {
	err := r.deleteClient(ctx, id)
	for errors.Is(err, clientcfg.ErrConflict) && ctx.Err() == nil {
		err = r.deleteClient(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("client %q: %w", id, err)
	}
	return nil
}

func (r *Service) deleteClient(ctx context.Context, id string) error {
	ch := change{action: "delete", target: clientcfg.ClientTarget(id)}
	defer func() { ch.end() }()
	c, err := r.FindClient(ctx, id)
	if errors.Is(err, clientcfg.ErrUnreadableClient) {
		e, err := r.event(ch)
		if err != nil {
			return err
		}
		return r.o.Store.DeleteClient(ctx, id, e)
	}
	if err == nil {
		err = r.o.IfClient(&c)
	}
	if err != nil {
		return err
	}
	ch.before = c.Metadata()
	if err := r.mayLockOut(ctx, &ch, &c, nil); err != nil {
		return err
	}
	e, err := r.event(ch)
	if err != nil {
		return err
	}
	return r.o.Store.DeleteUnchanged(ctx, c, e)
}

// RevokeClient invalidates everything issued to a client until now, and returns the client. Its
// secret stays valid. Tokens issued from now on are valid too. Instances follow when they refresh
// their clients, within two seconds. Tokens from an instance that has not refreshed yet are not
// accepted by the others. Errors: [clientcfg.ErrNotFound].
func (r *Service) RevokeClient(ctx context.Context, id string) (clientcfg.Client, error) {
	return r.changeClient(ctx, id, func(c *clientcfg.Client, _ time.Time) (change, error) {
		c.Stamp = c.Stamp.Revoked()
		return change{action: "revoke"}, nil
	})
}
