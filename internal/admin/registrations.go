package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"oauth-server/internal/accounts"
	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/precondition"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/clientcfg/lockout"
	"oauth-server/internal/secret"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/store"
	"oauth-server/internal/strict"
)

// registrar is a request that reads or changes clients and users.
type registrar struct {
	*call
	server     *Server
	name       string // the client or user in the path
	conditions precondition.Conditions
	registry   *registry.Service
}

// registrar reads the parameters of a change: the reason, the confirmation and the conditions.
func (s *Server) registrar(c *call, name string) (*registrar, error) {
	reason, err := c.reason()
	if err != nil {
		return nil, err
	}
	r := &registrar{call: c, server: s, name: name, conditions: precondition.Of(c.Request().Header)}
	r.registry = registry.New(registry.Options{
		Store: s.o.Registry, Events: s.o.Events, By: c.caller.Actor(), Reason: reason, Instance: s.o.Instance(),
		Confirmed: c.query.Get("confirm"), Now: s.o.Now, Passwords: s.o.Passwords, IfClient: r.ifClient, IfUser: r.ifUser,
	})
	return r, nil
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
		return accountProblem(name, f(r))
	}
}

// shows makes a handler that responds with what read returns of the client or user in the path.
func shows[T any](read func(r *registry.Service, ctx context.Context, name string) (T, error)) func(*registrar) error {
	return func(r *registrar) error {
		v, err := read(r.registry, r.Request().Context(), r.name)
		if err != nil {
			return err
		}
		return r.answer(v)
	}
}

// conditioned refuses a request without conditions.
func conditioned(f func(*registrar) error) func(*registrar) error {
	return func(r *registrar) error {
		if !r.conditions.Given() {
			return precondition.ErrMissing
		}
		return f(r)
	}
}

// stateOf returns the state of the metadata only. The time when a secret was used does not change
// it.
func stateOf(c *clientcfg.Client) precondition.State {
	return precondition.State{Doc: c.Metadata(), Exists: true, Version: c.Version}
}

// ifClient compares the conditions with the stored client before it is changed.
func (r *registrar) ifClient(c *clientcfg.Client) error {
	err := r.conditions.Check(stateOf(c))
	return r.explained(err, clientcfg.ClientTarget(c.ID), c.Version-max(0, r.conditions.Since()))
}

// answerClient responds with a client and its ETag. shown is a new secret, or empty.
func (r *registrar) answerClient(status int, c *clientcfg.Client, shown string) error {
	return r.answerState(status, stateOf(c), func() (any, error) {
		out := adminapi.Registered{Registration: adminapi.ShowRegistration(c, r.server.o.Now()), Secret: shown}
		if shown != "" {
			out.SecretExpiresAt = new(int64)
		}
		if policies := r.server.o.Policies; policies != nil {
			if err := lockout.By(policies.Snapshot(), c); err != nil {
				out.LockedOut = err.Error()
			}
		}
		return out, nil
	})
}

// follow makes this instance follow a change of a client at once. If that fails, it follows with
// the next refresh.
func (r *registrar) follow() {
	if clients := r.server.o.Clients; clients != nil {
		_ = clients.Renew(r.lasting(), 0)
	}
}

// changed responds with a changed client.
func (r *registrar) changed(status int, c *clientcfg.Client, shown string, err error) error {
	if err != nil {
		return err
	}
	r.follow()
	return r.answerClient(status, c, shown)
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
	client, err := adminapi.ReadNewClient(v)
	if err != nil {
		return err
	}
	made, shown, err := r.registry.CreateClient(r.lasting(), client)
	if err == nil {
		r.Response().Header().Set("Location", adminapi.Prefix+"/clients/"+adminapi.Escape(made.ID))
	}
	return accountProblem(client.ID, r.changed(http.StatusCreated, &made, shown, err))
}

func (s *Server) showRegistration(r *registrar) error {
	client, err := r.registry.FindClient(r.Request().Context(), r.name)
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
	v, err := r.mergePatch()
	if err != nil {
		return err
	}
	return r.update(func(c *clientcfg.Client) (*strict.Value, error) { return patched(c.Metadata(), v) })
}

func (r *registrar) update(document func(*clientcfg.Client) (*strict.Value, error)) error {
	changed, err := r.registry.ChangeClient(r.lasting(), r.name, func(c *clientcfg.Client) error {
		v, err := document(c)
		if err != nil {
			return err
		}
		return adminapi.ReadMetadata(v, c)
	})
	return r.changed(http.StatusOK, &changed, "", err)
}

func (s *Server) deleteClient(r *registrar) error {
	err := r.registry.DeleteClient(r.lasting(), r.name)
	if err == nil {
		r.follow()
	}
	return r.done(err)
}

func (s *Server) revokeClient(r *registrar) error {
	changed, err := r.registry.RevokeClient(r.lasting(), r.name)
	return r.changed(http.StatusOK, &changed, "", err)
}

func (s *Server) listSecrets(r *registrar) error {
	client, err := r.registry.FindClient(r.Request().Context(), r.name)
	if err != nil {
		return err
	}
	return r.answer(adminapi.Secrets{ClientID: client.ID, Secrets: registry.Secrets(&client, s.o.Now())})
}

// addSecret gives a client another secret, which only this response contains. The body may be missing.
func (s *Server) addSecret(r *registrar) error {
	var in registry.NewSecret
	if r.Request().ContentLength != 0 {
		v, err := r.body("application/json")
		if err != nil {
			return err
		}
		if err := v.Decode(&in, nil).Err(); err != nil {
			return err
		}
	}
	changed, shown, err := r.registry.AddSecret(r.lasting(), r.name, in)
	return r.changed(http.StatusCreated, &changed, shown, err)
}

func (s *Server) retireSecret(r *registrar) error {
	err := r.registry.RetireSecret(r.lasting(), r.name, r.Param("id"))
	if err == nil {
		r.follow()
	}
	return r.done(err)
}

// accountProblem returns the problem for an error of the registry about a client or user.
func accountProblem(name string, err error) error {
	var known *problem.Error
	var lockOut *registry.LockOutError
	var busy *secret.BusyError
	var partly *registry.PartlyError
	exists := func(format, name string) error {
		return problem.New(http.StatusConflict, problem.TypeExists, "Already exists", format, name)
	}
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
	}
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.As(err, &partly):
		p := problem.New(http.StatusServiceUnavailable, problem.TypeUnavailable, "Partly done",
			"ended %d, and then the store became unavailable; repeat the request to end the rest", partly.Ended)
		p.Cause = err
		return p
	case errors.As(err, &lockOut):
		return problem.New(http.StatusConflict, problem.TypeLockOut, "Would lock out an operator",
			"%v; to do it anyway, add ?confirm=%s", lockOut, lockOut.Name)
	case errors.As(err, &busy):
		p := problem.New(http.StatusServiceUnavailable, problem.TypeUnavailable, "Too many passwords are being checked", "try again later")
		p.RetryAfter = int64(busy.RetryAfter.Seconds())
		return p
	case is(clientcfg.ErrNotFound):
		return problem.NotFound("the client does not exist")
	case is(clientcfg.ErrExists):
		return exists("client %q already exists", name)
	case is(accounts.ErrExists):
		return exists("user %q already exists", username.Stored(name))
	case is(registry.ErrNameOfUser):
		return exists("user %q has this name, and their tokens would have the same sub; choose another ID", name)
	case is(registry.ErrNameOfClient):
		return exists("client %q has this ID, and their tokens would have the same sub; choose another name", name)
	case is(registry.ErrNoSecret, registry.ErrNoSession, registry.ErrNoFamily, registry.ErrNoConsent):
		return problem.NotFound("%v", err)
	case is(store.ErrNotFound):
		return problem.NotFound("the user does not exist")
	case is(registry.ErrPublic, registry.ErrLastSecret):
		return problem.Conflict("%v", err)
	case is(clientcfg.ErrUnreadableClient, accounts.ErrUnreadableUser):
		return problem.New(http.StatusConflict, problem.TypeUnreadable, "Unreadable", "%v; repair the record, or delete it", err)
	}
	return err
}
