package admin

import (
	"context"
	"net/http"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/registry"
	"oauth-server/internal/strict"
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
