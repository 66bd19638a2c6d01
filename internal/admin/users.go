package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/precondition"
	"oauth-server/internal/admin/registry"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/store"
	"oauth-server/internal/strict/fielderr"
)

// listUsers returns a page of the users.
func (s *Server) listUsers(c *call) error {
	r, err := s.registrar(c, "")
	if err != nil {
		return err
	}
	limit, err := c.number("limit", maxListed, usuallyListed)
	if err != nil {
		return err
	}
	// Names with the prefix are contiguous, and none of them sorts before the prefix.
	after, prefix := c.query.Get("after"), c.query.Get("prefix")
	out := adminapi.Users{Users: []registry.User{}}
	if prefix != "" && after < prefix {
		u, err := r.registry.User(c.Request().Context(), prefix)
		switch {
		case errors.Is(err, accounts.ErrUnreadableUser):
			u = registry.User{Username: username.Stored(prefix), Unreadable: errors.Unwrap(err).Error()}
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}
		if u.Username == prefix {
			out.Users = append(out.Users, u)
		}
		after = prefix
	}
	page, err := r.registry.Users(c.Request().Context(), after, int(limit)+1-len(out.Users))
	if err != nil {
		return err
	}
	for _, u := range page {
		if !strings.HasPrefix(u.Username, prefix) {
			break
		}
		out.Users = append(out.Users, u)
	}
	out.Users, out.Next = cut(out.Users, limit, func(u registry.User) string { return u.Username })
	return c.answer(out)
}

// createUser adds a user with a password or a password hash.
func (s *Server) createUser(c *call) error {
	r, err := s.registrar(c, "")
	if err != nil {
		return err
	}
	v, err := c.body("application/json")
	if err != nil {
		return err
	}
	var in registry.NewUser
	errs := v.Decode(&in, nil)
	errs.AddUnreported(checkOperator(in.Operator))
	if in.Password != "" && in.Hash != "" {
		errs.Add("password_hash", "cannot be used together with password")
	}
	_, err = in.Validate()
	errs.AddUnreported(fielderr.Of(err))
	if err := errs.Err(); err != nil {
		return err
	}
	u, err := r.registry.CreateUser(r.lasting(), in)
	if err != nil {
		return accountProblem(in.Name, err)
	}
	r.Response().Header().Set("Location", adminapi.Prefix+"/users/"+adminapi.Escape(u.Username))
	return r.answerUser(http.StatusCreated, &u)
}

func checkOperator(access clientcfg.Access) (errs fielderr.Errors) {
	switch access {
	case clientcfg.NoAccess, clientcfg.ReadAccess, clientcfg.WriteAccess:
	default:
		errs.Add("operator", "%q is not one of %q, %q; omit it, or set it to null, for no access", string(access), "read", "write")
	}
	return errs
}

func stateOfUser(u *registry.User) precondition.State {
	return precondition.State{Doc: u, Exists: true}
}

// ifUser compares the conditions with the stored user before it is changed.
func (r *registrar) ifUser(u *registry.User) error {
	return r.explained(r.conditions.Check(stateOfUser(u)), clientcfg.UserTarget(u.Username), 1)
}

// answerUser responds with a user and its ETag.
func (r *registrar) answerUser(status int, u *registry.User) error {
	return r.answerState(status, stateOfUser(u), func() (any, error) { return u, nil })
}

// userIs responds with a user that was read or changed.
func (r *registrar) userIs(u registry.User, err error) error {
	if err != nil {
		return err
	}
	return r.answerUser(http.StatusOK, &u)
}

// changes makes a handler from a change of the user in the path that needs no body.
func changes(do func(*registry.Service, context.Context, string) (registry.User, error)) func(*registrar) error {
	return func(r *registrar) error { return r.userIs(do(r.registry, r.lasting(), r.name)) }
}

func (s *Server) showUser(r *registrar) error {
	return r.userIs(r.registry.User(r.Request().Context(), r.name))
}

// patchUser changes the user's access to the admin API, the only field that can be changed
// separately.
func (s *Server) patchUser(r *registrar) error {
	v, err := r.mergePatch()
	if err != nil {
		return err
	}
	now, err := r.registry.User(r.lasting(), r.name)
	if err != nil {
		return err
	}
	whole, err := patched(now, v)
	if err != nil {
		return err
	}
	in := registry.User{Username: now.Username}
	errs := whole.Decode(&in, nil)
	errs.AddUnreported(checkOperator(in.Operator))
	if in.Username != now.Username {
		errs.Add("username", "%q differs from the address, which has %q", in.Username, now.Username)
	}
	if err := errs.Err(); err != nil {
		return err
	}
	return r.userIs(r.registry.SetOperator(r.lasting(), r.name, in.Operator))
}

func (s *Server) deleteUser(r *registrar) error {
	return r.done(r.registry.DeleteUser(r.lasting(), r.name))
}

// setPassword replaces the password, and ends everything from sign-ins with the previous one.
func (s *Server) setPassword(r *registrar) error {
	v, err := r.body("application/json")
	if err != nil {
		return err
	}
	var in adminapi.NewPassword
	if err := v.Decode(&in, nil).Err(); err != nil {
		return err
	}
	return r.userIs(r.registry.SetPassword(r.lasting(), r.name, in.Password))
}

// endSessions ends the session in the path, or all sessions.
func (s *Server) endSessions(r *registrar) error {
	n, err := r.registry.EndSessions(r.lasting(), r.name, r.Param("id"))
	if err != nil {
		return err
	}
	return r.answer(adminapi.Ended{Username: r.name, Ended: n})
}

// withdrawConsent ends the user's consent to the client in the path.
func (s *Server) withdrawConsent(r *registrar) error {
	id, err := r.clientID()
	if err != nil {
		return err
	}
	return r.done(r.registry.WithdrawConsent(r.lasting(), r.name, id))
}

// revokeFamilies revokes the family in the path, or all families. All may be many. Once begun, the
// revocation runs to the end, however long it takes and even if the caller disconnects, and the
// response follows afterwards. Revoking all families runs for one user at a time. Other such
// requests wait, and are not begun if their callers disconnect before their turn.
func (s *Server) revokeFamilies(r *registrar) error {
	ctx, id := r.Request().Context(), r.Param("id")
	deadlines := http.NewResponseController(r.Response())
	_ = deadlines.SetWriteDeadline(time.Time{})
	if id == "" {
		select {
		case s.revoking <- struct{}{}:
			defer func() { <-s.revoking }()
		case <-ctx.Done():
			return fmt.Errorf("admin: wait until the families of another user are revoked: %w", ctx.Err())
		}
	}
	n, err := r.registry.RevokeFamilies(context.WithoutCancel(ctx), r.name, id)
	_ = deadlines.SetWriteDeadline(time.Now().Add(applyWithin))
	if err != nil {
		return err
	}
	return r.answer(adminapi.Ended{Username: r.name, Ended: n})
}
