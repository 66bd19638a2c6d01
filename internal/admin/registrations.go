package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/grants"
	"oauth-server/internal/registry"
	"oauth-server/internal/secret"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// registrar is a request that reads or changes clients and users.
type registrar struct {
	*call
	server  *Server
	name    string // the client or user in the path
	options registry.Options
}

// registrar reads the parameters of a change: the reason, and the confirmation.
func (s *Server) registrar(c *call, name string) (*registrar, error) {
	reason, err := c.reason()
	if err != nil {
		return nil, err
	}
	return &registrar{c, s, name, registry.Options{
		Store: s.o.Registry, Events: s.o.Events, By: c.caller.actor(), Reason: reason, Instance: s.o.Instance(),
		Confirmed: c.query.Get("confirm"), Now: s.o.Now, Passwords: s.o.Passwords,
	}}, nil
}

// registry returns the registry for the request.
func (r *registrar) registry() *registry.Registry { return registry.New(r.options) }

// lasting returns a context for a change. It continues if the caller disconnects, so the outcome is
// certain.
func (r *registrar) lasting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Request().Context()), applyWithin)
}

// onClient makes a handler from one for the client in the path.
func (s *Server) onClient(f func(*registrar) error) handler { return s.onNamed((*call).clientID, f) }

// onUser makes a handler from one for the user in the path.
func (s *Server) onUser(f func(*registrar) error) handler { return s.onNamed((*call).username, f) }

func (s *Server) onNamed(nameOf func(*call) (string, error), f func(*registrar) error) handler {
	return func(c *call) error {
		name, err := nameOf(c)
		if err != nil {
			return err
		}
		r, err := s.registrar(c, name)
		if err != nil {
			return err
		}
		return registryProblem(name, f(r))
	}
}

// etagOfClient returns the ETag of the metadata only. The time when a secret was used does not
// change it.
func etagOfClient(c *clientcfg.Client) (string, error) { return etagOf(c.Version, c.Metadata()) }

// conditional applies the request's conditions to the change. If needed is set, a request without
// conditions is refused.
func (r *registrar) conditional(needed bool) error {
	conditions := conditionsOf(r.Request().Header)
	if needed && !conditions.given() {
		return errNoCondition
	}
	r.options.IfClient = func(c *clientcfg.Client) error {
		etag, err := etagOfClient(c)
		if err != nil {
			return err
		}
		err = conditions.check(etag, true)
		return r.explained(err, clientcfg.ClientTarget(c.ID), c.Version-max(0, conditions.since()))
	}
	return nil
}

// followed makes this instance follow a change at once. If that fails, it follows with the next
// refresh.
func (r *registrar) followed(ctx context.Context) {
	if clients := r.server.o.Clients; clients != nil {
		_ = clients.Renew(ctx, 0)
	}
}

// answerClient responds with a client and its ETag.
func (r *registrar) answerClient(status int, c *clientcfg.Client, shown string) error {
	etag, err := etagOfClient(c)
	if err != nil {
		return err
	}
	r.Response().Header().Set("ETag", etag)
	if r.Request().Method == http.MethodGet && conditionsOf(r.Request().Header).unchanged(etag) {
		r.Response().WriteHeader(http.StatusNotModified)
		return nil
	}
	out := adminapi.Registered{Registration: adminapi.ShowRegistration(c, r.server.o.Now()), Secret: shown}
	if shown != "" {
		out.SecretExpiresAt = new(int64)
	}
	if policies := r.server.o.Policies; policies != nil {
		if err := policies.Snapshot().LocksOut(c); err != nil {
			out.LockedOut = err.Error()
		}
	}
	return r.answerStatus(status, out)
}

// createClient registers a client. Only this response contains its secret.
func (s *Server) createClient(c *call) error {
	r, err := s.registrar(c, "")
	if err != nil {
		return err
	}
	v, err := c.body("application/json")
	if err != nil {
		return err
	}
	client, err := ReadNewClient(v)
	if err != nil {
		return err
	}
	ctx, cancel := r.lasting()
	defer cancel()
	made, shown, err := r.registry().CreateClient(ctx, client)
	if err != nil {
		return registryProblem(client.ID, err)
	}
	r.followed(ctx)
	r.Response().Header().Set("Location", adminapi.Prefix+"/clients/"+adminapi.Escape(made.ID))
	return r.answerClient(http.StatusCreated, &made, shown)
}

func (s *Server) showRegistration(r *registrar) error {
	client, err := r.registry().FindClient(r.Request().Context(), r.name)
	if err != nil {
		return err
	}
	return r.answerClient(http.StatusOK, &client, "")
}

// putRegistration replaces all metadata of a client (RFC 7592 2.2).
func (s *Server) putRegistration(r *registrar) error {
	v, err := r.body("application/json")
	if err != nil {
		return err
	}
	return r.update(func(*clientcfg.Client) (*strict.Value, error) { return v, nil })
}

// patchRegistration changes metadata of a client (RFC 7396).
func (s *Server) patchRegistration(r *registrar) error {
	v, err := r.body("application/merge-patch+json", "application/json")
	if err != nil {
		return err
	}
	if !v.IsObject() {
		return malformed("a merge patch for this resource is an object (RFC 7396), not %s", v)
	}
	return r.update(func(c *clientcfg.Client) (*strict.Value, error) {
		base, err := strict.Of(c.Metadata())
		if err != nil {
			return nil, err
		}
		return strict.MergePatch(base, v), nil
	})
}

func (r *registrar) update(document func(*clientcfg.Client) (*strict.Value, error)) error {
	if err := r.conditional(true); err != nil {
		return err
	}
	ctx, cancel := r.lasting()
	defer cancel()
	changed, err := r.registry().ChangeClient(ctx, r.name, func(c *clientcfg.Client) error {
		v, err := document(c)
		if err != nil {
			return err
		}
		return readMetadata(v, c)
	})
	if err != nil {
		return err
	}
	r.followed(ctx)
	return r.answerClient(http.StatusOK, &changed, "")
}

func (s *Server) deleteClient(r *registrar) error {
	if err := r.conditional(true); err != nil {
		return err
	}
	ctx, cancel := r.lasting()
	defer cancel()
	if err := r.registry().DeleteClient(ctx, r.name); err != nil {
		return err
	}
	r.followed(ctx)
	r.Response().WriteHeader(http.StatusNoContent)
	return nil
}

// listLimits returns what operators have set for a client, registered or not.
func (s *Server) listLimits(r *registrar) error {
	set, err := r.registry().LimitsOf(r.Request().Context(), r.name)
	if err != nil {
		return err
	}
	return r.answer(set)
}

func (s *Server) revokeClient(r *registrar) error {
	if err := r.conditional(false); err != nil {
		return err
	}
	ctx, cancel := r.lasting()
	defer cancel()
	changed, err := r.registry().RevokeClient(ctx, r.name)
	if err != nil {
		return err
	}
	r.followed(ctx)
	return r.answerClient(http.StatusOK, &changed, "")
}

func (s *Server) listSecrets(r *registrar) error {
	client, err := r.registry().FindClient(r.Request().Context(), r.name)
	if err != nil {
		return err
	}
	return r.answer(adminapi.Secrets{ClientID: client.ID, Secrets: registry.Secrets(&client, s.o.Now())})
}

// addSecret gives a client another secret, which only this response contains.
func (s *Server) addSecret(r *registrar) error {
	if err := r.conditional(false); err != nil {
		return err
	}
	rotation, err := r.rotation()
	if err != nil {
		return err
	}
	ctx, cancel := r.lasting()
	defer cancel()
	changed, shown, err := r.registry().AddSecret(ctx, r.name, rotation)
	if err != nil {
		return err
	}
	r.followed(ctx)
	return r.answerClient(http.StatusCreated, &changed, shown)
}

// rotation reads the body of a request for another secret. The body may be missing.
func (r *registrar) rotation() (out registry.Rotation, err error) {
	if r.Request().ContentLength == 0 {
		return out, nil
	}
	v, err := r.body("application/json")
	if err != nil {
		return out, err
	}
	var in adminapi.NewSecret
	errs := v.Decode(&in, nil)
	if in.Overlap != "" {
		if out.Overlap, err = time.ParseDuration(in.Overlap); err != nil {
			errs.Add("overlap", "%q is not a duration such as 24h", in.Overlap)
		}
	}
	out.Revoke = in.Revoke
	return out, errs.Err()
}

func (s *Server) retireSecret(r *registrar) error {
	if err := r.conditional(false); err != nil {
		return err
	}
	ctx, cancel := r.lasting()
	defer cancel()
	if err := r.registry().RetireSecret(ctx, r.name, r.Param("id")); err != nil {
		return err
	}
	r.followed(ctx)
	r.Response().WriteHeader(http.StatusNoContent)
	return nil
}

// metadataInput is a client in a request (RFC 7591 2). Read-only fields are ignored, so a document
// can be read, edited and sent back. A secret is not accepted.
type metadataInput struct {
	ClientID        *string            `json:"client_id"`
	Name            string             `json:"client_name"`
	AuthMethod      string             `json:"token_endpoint_auth_method"`
	Grants          []clientcfg.Grant  `json:"grant_types"`
	ResponseTypes   []string           `json:"response_types"`
	RedirectURIs    []string           `json:"redirect_uris"`
	Scope           string             `json:"scope"`
	Audience        []string           `json:"audience"`
	RequirePKCE     *bool              `json:"require_pkce"`
	ResourceServer  bool               `json:"resource_server"`
	FirstParty      bool               `json:"first_party"`
	Labels          map[string]*string `json:"labels"` // a null value means no such label
	IssuedAt        strict.Skip        `json:"client_id_issued_at"`
	SecretExpiresAt strict.Skip        `json:"client_secret_expires_at"`
	Secrets         strict.Skip        `json:"secrets"`
	Meta            strict.Skip        `json:"meta"`
}

// Limits on a client.
const (
	maxItems = 100 // of each list
	maxName  = 200 // bytes
	maxItem  = 2000
)

// check returns the fields out of bounds.
func (in *metadataInput) check() (errs fielderr.Errors) {
	if len(in.Name) > maxName {
		errs.Add("client_name", "has %d bytes, more than %d", len(in.Name), maxName)
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"redirect_uris", in.RedirectURIs}, {"audience", in.Audience}, {"scope", strings.Fields(in.Scope)}} {
		if len(list.items) > maxItems {
			errs.Add(list.name, "has %d items, more than %d", len(list.items), maxItems)
		}
		for i, item := range list.items {
			if item == "" || len(item) > maxItem {
				errs.Add(fielderr.Item(list.name, i), "needs 1 to %d bytes", maxItem)
			}
		}
	}
	return errs
}

// readMetadata replaces the metadata of a client. It leaves the validation of the whole client to
// the registry, unless there are other errors: then it returns all of them.
func readMetadata(v *strict.Value, c *clientcfg.Client) error {
	var in metadataInput
	errs := v.Decode(&in, nil)
	errs.AddUnreported(adminapi.CheckClientID(in.ClientID, c.ID))
	return in.apply(errs, c)
}

func (in *metadataInput) apply(errs fielderr.Errors, c *clientcfg.Client) error {
	labels, err := in.labels()
	errs.AddUnreported(fielderr.Of(err))
	m := clientcfg.Metadata{
		ClientID: c.ID, Name: in.Name, AuthMethod: in.AuthMethod, Grants: in.Grants, ResponseTypes: in.ResponseTypes,
		RedirectURIs: in.RedirectURIs, Scope: in.Scope, Audience: in.Audience,
		RequirePKCE: in.RequirePKCE == nil || *in.RequirePKCE, ResourceServer: in.ResourceServer, FirstParty: in.FirstParty,
		Labels: labels,
	}
	errs.AddUnreported(in.check())
	errs.AddUnreported(m.Apply(c))
	if len(errs) > 0 {
		judged := *c
		if judged.Public = m.AuthMethod == clientcfg.AuthNone; judged.Public {
			judged.SecretDigest = secret.Digest{}
		}
		errs.AddUnreported(clientcfg.MetadataErrors(fielderr.Of(judged.Validate())))
	}
	return errs.Err()
}

// labels returns the labels that are not null, and their errors.
func (in *metadataInput) labels() (clientcfg.Labels, error) {
	values := map[string]string{}
	for name, value := range in.Labels {
		if value != nil {
			values[name] = *value
		}
	}
	return clientcfg.ParseLabels(clientcfg.LabelPairs(values))
}

// ReadNewClient reads a client to be registered. Its secret may be given as a digest, if it is
// already in use elsewhere. Errors: [fielderr.Errors].
func ReadNewClient(v *strict.Value) (c clientcfg.Client, err error) {
	var in struct {
		metadataInput
		SecretHash string `json:"client_secret_hash"`
	}
	errs := v.Decode(&in, nil)
	if in.ClientID != nil {
		c.ID = *in.ClientID
	}
	if in.SecretHash != "" {
		if c.SecretDigest, err = secret.ParseDigest(in.SecretHash); err != nil {
			errs.Add("client_secret_hash", "%v", err)
		}
	}
	digest := c.SecretDigest
	if in.AuthMethod != clientcfg.AuthNone {
		c.SecretDigest = secret.DigestOf("") // so only the fields in the request are checked
	}
	err = in.apply(errs, &c)
	c.SecretDigest = digest
	return c, err
}

// registryProblem returns the problem for an error of the registry about a client or user.
func registryProblem(name string, err error) error {
	var known *problemError
	var invalidErr *registry.InvalidError
	var lockOut *registry.LockOutError
	var busy *secret.BusyError
	var partly *registry.PartlyError
	exists := func(format, name string) error {
		return problem(http.StatusConflict, typeExists, "Exists already", format, name)
	}
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.As(err, &partly):
		p := problem(http.StatusServiceUnavailable, typeUnavailable, "Ended in part",
			"%d were ended, and others not, because the store could not be asked; send the request again for the others", partly.Ended)
		p.cause = err
		return p
	case errors.As(err, &invalidErr):
		return invalid(fieldsOf(invalidErr))
	case errors.As(err, &lockOut):
		return problem(http.StatusConflict, typeLockOut, "Would lock out an operator",
			"%v; to do it nevertheless, add ?confirm=%s", lockOut, lockOut.Name)
	case errors.As(err, &busy):
		p := problem(http.StatusServiceUnavailable, typeUnavailable, "Too many passwords are being checked", "try again later")
		p.retryAfter = int64(busy.RetryAfter.Seconds())
		return p
	case is(clientcfg.ErrNotFound):
		return notFound("there is no such client")
	case is(clientcfg.ErrExists):
		return exists("there is a client %q already", name)
	case is(grants.ErrExists):
		return exists("there is a user %q already", username.Stored(name))
	case is(registry.ErrNameOfUser):
		return exists("there is a user %q: the tokens of a client and a user of one name would have the same sub; choose another ID", name)
	case is(registry.ErrNameOfClient):
		return exists("there is a client %q: the tokens of a client and a user of one name would have the same sub; choose another name", name)
	case is(registry.ErrNoSecret, registry.ErrNoSession, registry.ErrNoFamily, registry.ErrNoConsent):
		return notFound("%v", err)
	case is(grants.ErrNotFound):
		return notFound("there is no such user")
	case is(registry.ErrPublic, registry.ErrLastSecret):
		return conflict("%v", err)
	case is(clientcfg.ErrUnreadableClient, grants.ErrUnreadableUser):
		return problem(http.StatusConflict, typeUnreadable, "Cannot be read", "%v; mend what is stored, or delete it", err)
	}
	return err
}

// fieldsOf returns the errors of a client or user by field. Some are plain errors that start with
// the name of the field.
func fieldsOf(err *registry.InvalidError) fielderr.Errors {
	if errs := fielderr.Of(err); errs != nil {
		return clientcfg.MetadataErrors(errs)
	}
	var errs fielderr.Errors
	for line := range strings.Lines(err.Error()) {
		name, message, found := strings.Cut(strings.TrimSpace(line), ": ")
		if !found || strings.Contains(name, " ") {
			name, message = "", strings.TrimSpace(line)
		}
		errs.Add(name, "%s", message)
	}
	return errs
}
