package grants

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"time"

	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/store"
)

// Errors of [Service.Approve] about the consent page.
var (
	// ErrConsentPage means that the page belongs to another session or request, or is too old. Show
	// the user a new page.
	ErrConsentPage = errors.New("grants: consent page expired, or of another session or request")
	// ErrConsentUsed means that the code of the page was redeemed or has expired. The client has to
	// start again.
	ErrConsentUsed = errors.New("grants: consent page already used")
)

// pageLifetime is how long a consent page can be answered. Its code is stored for as long, which
// ensures that a page never gives a second code.
const pageLifetime = 10 * time.Minute

// answersPerCode is how many consent pages a session may answer for each of
// [Options].CodesPerSession, counting repeated answers. Concurrent answers to a page with no stored
// code yet count as one code each.
const answersPerCode = 10

// Consent is the user's answer to one showing of the consent page, in one session, for one
// authorization request.
type Consent struct {
	Cookie  string // value of the session's cookie; 256 random bits; keys the MACs of the page
	Request string // the authorization request, as sent back by the page
	Page    string // from [NewConsentPage], as sent back by the page
}

// The name of a page is its creation time in milliseconds, followed by random bytes.
const pageNameSize = 8 + 16

// NewConsentPage returns the value that a consent page carries. It ties the page to the session and
// the request, and is different each time the page is shown. The key is the cookie, so only the
// browser with the cookie can make such a page. That browser could make any number of them, as it
// could also request them, and [Options].CodesPerSession bounds their use.
func NewConsentPage(now time.Time, cookie, request string) string {
	name := make([]byte, pageNameSize)
	binary.BigEndian.PutUint64(name, uint64(now.UnixMilli()))
	_, _ = rand.Read(name[8:]) // crypto/rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(append(name, consentMAC(cookie, "consent page", name, request)...))
}

// name returns the name of the page. ok is false if the page does not belong to this session and
// request.
func (c *Consent) name() (name []byte, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(c.Page)
	if err != nil || len(raw) != pageNameSize+sha256.Size || strings.ContainsAny(c.Page, "\r\n") || c.Cookie == "" {
		return nil, false
	}
	name = raw[:pageNameSize]
	return name, hmac.Equal(raw[pageNameSize:], consentMAC(c.Cookie, "consent page", name, c.Request))
}

// Genuine reports whether the page was made for this session and request, regardless of its age.
func (c *Consent) Genuine() bool {
	_, ok := c.name()
	return ok
}

// code returns the random part of the page's authorization code. It is the same each time, so the
// store detects the second use. Without the cookie it cannot be predicted.
func (c *Consent) code(now time.Time) (random []byte, opened time.Time, err error) {
	name, ok := c.name()
	if !ok {
		return nil, opened, ErrConsentPage
	}
	opened = time.UnixMilli(int64(binary.BigEndian.Uint64(name))) //nolint:gosec // G115: undoes NewConsentPage
	if now.Sub(opened).Abs() >= pageLifetime {
		return nil, opened, ErrConsentPage
	}
	return consentMAC(c.Cookie, "authorization code", name, c.Request)[:codeRandom], opened, nil
}

// FormToken returns the value that protects a form against forgery. Only a page of the session can
// contain it. It is valid for one action on one object.
func FormToken(cookie, action, of string) string {
	return base64.RawURLEncoding.EncodeToString(consentMAC(cookie, "form "+action, nil, of))
}

// GenuineForm reports whether token is the [FormToken] of these arguments.
func GenuineForm(token, cookie, action, of string) bool {
	return cookie != "" && hmac.Equal([]byte(token), []byte(FormToken(cookie, action, of)))
}

// consentMAC authenticates a page or a form, or derives a code, depending on purpose.
func consentMAC(cookie, purpose string, page []byte, request string) []byte {
	h := hmac.New(sha256.New, []byte(cookie))
	_, _ = h.Write(append([]byte(purpose+"\x00"), page...)) // fixed length for each purpose
	_, _ = io.WriteString(h, request)
	return h.Sum(nil)
}

// answersOf is the username in the key for counting the answers of a session. The key for its codes
// has no username.
const answersOf = "answers"

// countConsent counts a code of the session, or an answer if of is answersOf. Codes and answers
// have separate limits.
func (s *Service) countConsent(session, of string) error {
	wait := s.consents.Take(s.opts.Clock(), ratelimit.Key{ClientID: session, Username: of})
	return attempts.TooMany(wait, "sessions.codes", "Too many authorizations in this session")
}

// answered reports whether the page of the code was answered before, for example by a double click.
// It returns [ErrConsentUsed] if the code can no longer be redeemed.
func (s *Service) answered(ctx context.Context, d secret.Digest, now time.Time) (before bool, err error) {
	stored, err := s.store.Grant(ctx, d)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, storeFailed("read authorization code", err)
	case stored.Claimed || s.codeExpired(&stored, now):
		return true, ErrConsentUsed
	}
	return true, nil
}

// codeExpired reports whether the code can no longer be redeemed. Its record may live longer.
func (s *Service) codeExpired(c *Grant, now time.Time) bool {
	return !now.Before(c.ExpiresAt) || !now.Before(c.IssuedAt.Add(s.opts.CodeLifetime))
}
