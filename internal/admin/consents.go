package admin

import (
	"net/http"

	"oauth-server/internal/adminapi"
)

// listConsents answers with what a user allows clients.
func (s *Server) listConsents(r *registrar) error {
	user, allowed, err := r.registry().Consents(r.Request().Context(), r.name)
	if err != nil {
		return err
	}
	out := adminapi.Consents{Username: user, Consents: []adminapi.Consent{}}
	for _, a := range allowed {
		out.Consents = append(out.Consents, adminapi.Consent{
			ClientID: a.ClientID, Scopes: append([]string{}, a.Scopes...), AgreedAt: a.AgreedAt, UsedAt: a.UsedAt, ExpiresAt: a.ExpiresAt,
		})
	}
	return r.answer(out)
}

// withdrawConsent ends what a user allows a client.
func (s *Server) withdrawConsent(r *registrar) error {
	id, err := r.clientID()
	if err != nil {
		return err
	}
	ctx, cancel := r.lasting()
	defer cancel()
	if err := r.registry().WithdrawConsent(ctx, r.name, id); err != nil {
		return err
	}
	r.Response().WriteHeader(http.StatusNoContent)
	return nil
}
