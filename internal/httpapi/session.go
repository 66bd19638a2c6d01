package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"oauth-server/internal/accounts"
)

// errSignedOut means that the browser has no valid session.
var errSignedOut = errors.New("httpapi: no user is signed in")

// session returns the session of the browser, or errSignedOut. It does not treat an internal error
// as signed out. Otherwise people would type their passwords in vain during an outage.
func (s *Server) session(c *call) (accounts.Session, error) {
	value := s.cookieValue(c)
	if value == "" {
		return accounts.Session{}, errSignedOut
	}
	session, err := s.o.Service.Session(c.ctx(), value)
	if errors.Is(err, accounts.ErrNoSession) {
		return accounts.Session{}, errSignedOut
	}
	return session, err
}

func (s *Server) cookieValue(c *call) string {
	cookie, err := c.Request().Cookie(s.cookie)
	if err != nil || len(cookie.Value) > 256 {
		return ""
	}
	return cookie.Value
}

// setCookie sets the session cookie. With https, its name starts with __Host-, so neither another
// host of the domain nor plain http can set it (draft-ietf-httpbis-rfc6265bis 4.1.3.2).
func (s *Server) setCookie(c *call, value string, session accounts.Session) {
	http.SetCookie(c.Response(), s.newCookie(value, session.ExpiresAt, 0))
}

func (s *Server) clearCookie(c *call) {
	http.SetCookie(c.Response(), s.newCookie("", time.Time{}, -1))
}

func (s *Server) newCookie(value string, expires time.Time, maxAge int) *http.Cookie {
	//nolint:gosec // G124: without Secure only where the issuer is plain http, on a loopback address or in a trial
	return &http.Cookie{
		Name: s.cookie, Value: value, Path: "/", Expires: expires, MaxAge: maxAge,
		HttpOnly: true, Secure: s.https, SameSite: http.SameSiteLaxMode,
	}
}

// sameOrigin refuses forms that a page of another site posted, by Sec-Fetch-Site and Origin
// ([http.CrossOriginProtection]).
func (s *Server) sameOrigin(next handler) handler {
	return func(c *call) error {
		if err := s.guard.Check(c.Request()); err != nil {
			return fmt.Errorf("%w: %w", errCrossOrigin, err)
		}
		return next(c)
	}
}

// errCrossOrigin is the error of a form from a page of another site.
var errCrossOrigin = errors.New("httpapi: cross-origin form")
