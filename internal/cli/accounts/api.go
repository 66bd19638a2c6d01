package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/connect"
	"oauth-server/internal/clientcfg"
)

func clientPath(id string, more ...string) string {
	return "/clients/" + adminapi.Escape(id) + strings.Join(more, "")
}

func userPath(name string, more ...string) string {
	return "/users/" + adminapi.Escape(name) + strings.Join(more, "")
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

// warn warns if limits lock out a client that was registered or changed.
func warn(c *connect.Commands, doc *adminapi.Registration) {
	if doc.LockedOut != "" {
		c.Note("Limits in force lock this client out of the admin API: %s", doc.LockedOut)
	}
}

// createClient registers a client and returns it as stored, with its secret if it is confidential and
// has no digest yet.
func createClient(ctx context.Context, c *connect.Commands, api *adminclient.Client, cl clientcfg.Client) (clientcfg.Client, string, error) {
	in := adminapi.NewClient{Metadata: cl.Metadata()}
	if !cl.SecretDigest.IsZero() {
		in.SecretHash = cl.SecretDigest.String()
	}
	var out adminapi.Registered
	if err := api.Do(ctx, http.MethodPost, "/clients", in, &out); err != nil {
		return cl, "", err
	}
	warn(c, &out.Registration)
	return stored(&out.Registration), out.Secret, nil
}

// readClient returns the client with that ID, and its ETag.
func readClient(ctx context.Context, api *adminclient.Client, id string) (doc adminapi.Registration, etag string, err error) {
	etag, err = api.Get(ctx, clientPath(id), nil, &doc)
	return doc, etag, err
}

// mostEdits is the maximum number of attempts of a change while other changes get in first.
const mostEdits = 10

// changeClient changes the metadata of a client and returns it. If others change the client at the
// same time, edit is called again with the newly stored client.
func changeClient(ctx context.Context, c *connect.Commands, api *adminclient.Client, id string, edit func(*clientcfg.Client)) (out clientcfg.Client, err error) {
	for range mostEdits {
		doc, etag, err := readClient(ctx, api, id)
		if err != nil {
			return out, err
		}
		out = stored(&doc)
		edit(&out)
		var changed adminapi.Registration
		_, err = api.Change(ctx, adminclient.Change{Method: http.MethodPut, Path: clientPath(id), ETag: etag, Body: out.Metadata()}, &changed)
		var p *adminclient.ProblemError
		if !errors.As(err, &p) || !p.Stale() {
			warn(c, &changed)
			return stored(&changed), err
		}
	}
	return out, err
}

// pageSize is the number of items read at once.
const pageSize = "1000"

// absent are the refusals for a missing part of a client or user. Any other one with status 404 means
// that the client or user is missing.
var absent = []error{registry.ErrNoSecret, registry.ErrNoSession, registry.ErrNoFamily, registry.ErrNoConsent}

// explain turns an error about a client or a user into a message for the terminal. kind is client or
// user.
func explain(kind, name string, err error) error {
	var p *adminclient.ProblemError
	if !errors.As(err, &p) {
		return err
	}
	switch {
	case p.NotFound():
		if i := slices.IndexFunc(absent, func(err error) bool { return err.Error() == p.Detail }); i >= 0 {
			return absent[i]
		}
		return fmt.Errorf("%s %q does not exist", kind, name)
	case p.Exists():
		return errors.New(p.Detail)
	case p.Unreadable():
		why, _, _ := strings.Cut(p.Detail, "; repair the record")
		return fmt.Errorf("%s; repair the record, or delete it with oauth-server %s delete '%s'", why, kind, name)
	case p.Status == http.StatusUnprocessableEntity:
		return command.Usage(err)
	case p.LocksOut():
		why, _, _ := strings.Cut(p.Detail, "; to do it anyway") // drops the advice about a parameter of the API
		return fmt.Errorf("%s; to do it anyway, add --confirm '%s'", why, name)
	case p.Status == http.StatusForbidden:
		return fmt.Errorf("%w; give the client the scopes with oauth-server client update ID --admin", err)
	}
	return err
}
