package admin

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/grants"
)

// Consents are what users allow clients. [grants.Service] is one.
type Consents interface {
	// Allowed returns what a user allows clients, ordered by client.
	Allowed(ctx context.Context, username string) ([]grants.Allowed, error)
	// Withdraw ends what a user allows a client, and what came of it. [grants.ErrNotFound].
	Withdraw(ctx context.Context, username, clientID string) error
}

func (s *Server) consentRoutes() []route {
	return []route{
		{http.MethodGet, "/users/:username/consents", read, s.listConsents},
		{http.MethodDelete, "/users/:username/consents/:client_id", write, s.withdrawConsent},
	}
}

// consentUser returns the user in the path, by the name that is stored.
func (s *Server) consentUser(c *call) (string, error) {
	name, err := c.Param("username"), error(nil)
	if c.Request().URL.RawPath != "" {
		name, err = url.PathUnescape(name)
	}
	if err != nil || grants.ValidateUsername(name) != nil {
		return "", notFound("no username is like that")
	}
	ctx := c.Request().Context()
	if name, err = grants.StoredName(ctx, s.o.Users, name); err != nil {
		return "", err
	}
	switch _, err := s.o.Users.User(ctx, name); {
	case errors.Is(err, grants.ErrNotFound):
		return "", notFound("there is no user %q", name)
	case err != nil && !errors.Is(err, grants.ErrUnreadableUser):
		return "", err
	}
	return name, nil
}

// listConsents answers with what a user allows clients.
func (s *Server) listConsents(c *call) error {
	if err := c.parameters(); err != nil {
		return err
	}
	name, err := s.consentUser(c)
	if err != nil {
		return err
	}
	allowed, err := s.o.Consents.Allowed(c.Request().Context(), name)
	if err != nil {
		return err
	}
	out := adminapi.Consents{Username: name, Consents: []adminapi.Consent{}}
	for _, a := range allowed {
		out.Consents = append(out.Consents, adminapi.Consent{
			ClientID: a.ClientID, Scopes: append([]string{}, a.Scopes...), AgreedAt: a.AgreedAt, UsedAt: a.UsedAt, ExpiresAt: a.ExpiresAt,
		})
	}
	return c.answer(out)
}

// withdrawConsent ends what a user allows a client.
func (s *Server) withdrawConsent(c *call) error {
	if err := c.parameters(); err != nil {
		return err
	}
	name, err := s.consentUser(c)
	if err != nil {
		return err
	}
	id, err := c.clientID()
	if err != nil {
		return err
	}
	switch err := s.o.Consents.Withdraw(c.Request().Context(), name, id); {
	case errors.Is(err, grants.ErrNotFound):
		return notFound("the user %q allows the client %q nothing", name, id)
	case err != nil:
		return err
	}
	s.log.LogAttrs(c.Request().Context(), slog.LevelInfo, "consent withdrawn by an operator",
		slog.String("client_id", id), slog.String("username", name), slog.Any("by", c.caller.actor()))
	c.Response().WriteHeader(http.StatusNoContent)
	return nil
}
