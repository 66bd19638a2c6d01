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

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
)

// Errors of [Service.Approve] about the page that the user answered.
var (
	// ErrConsentPage is returned for a page of another session or request, or too old a page: show
	// the user a new one.
	ErrConsentPage = errors.New("grants: not a consent page of this session and request, or too old")
	// ErrConsentUsed is returned for a page whose code has been redeemed or has expired: the client
	// has to start again.
	ErrConsentUsed = errors.New("grants: the consent page has been used")
)

// pageLifetime is how long a consent page can be answered. Its code is stored as long, so that the
// page never gives a second one.
const pageLifetime = 10 * time.Minute

// answersPerCode is how many consent pages a session may answer for each of [Options].CodesPerSession, those that
// were answered before included. Answers at once to a page whose code is not stored yet count as a code each.
const answersPerCode = 10

// Consent is what a user answered: one showing of the consent page, in one session, for one
// authorization request.
type Consent struct {
	Cookie  string // value of the session's cookie; 256 random bits, the key of all below
	Request string // the authorization request, as the page carried it
	Page    string // from [NewConsentPage], as the page carried it
}

// A page is named by the time when it was made, in milliseconds, and by random bytes.
const pageNameSize = 8 + 16

// NewConsentPage returns what a consent page carries. It ties the page to the session and to the
// request, and makes it different from every other showing. The key is the cookie, so only the
// browser that has it can make such a page. That browser can make any number: it could as well ask
// for them, and [Options].CodesPerSession bounds what they are good for.
func NewConsentPage(now time.Time, cookie, request string) string {
	name := make([]byte, pageNameSize)
	binary.BigEndian.PutUint64(name, uint64(now.UnixMilli()))
	_, _ = rand.Read(name[8:]) // crypto/rand.Read never fails
	return base64.RawURLEncoding.EncodeToString(append(name, consentMAC(cookie, "consent page", name, request)...))
}

// name returns the name of the page, and false if the page is not of this session and request.
func (c *Consent) name() (name []byte, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(c.Page)
	if err != nil || len(raw) != pageNameSize+sha256.Size || strings.ContainsAny(c.Page, "\r\n") || c.Cookie == "" {
		return nil, false
	}
	name = raw[:pageNameSize]
	return name, hmac.Equal(raw[pageNameSize:], consentMAC(c.Cookie, "consent page", name, c.Request))
}

// Genuine reports whether the page was made for this session and request, however long ago.
func (c *Consent) Genuine() bool {
	_, ok := c.name()
	return ok
}

// code returns what the authorization code of the page is made of, the same each time, so that the store recognises
// the second use. Without the cookie it is random.
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

// FormToken returns what a form carries that only a page of the session can have made: for one action, on
// one thing.
func FormToken(cookie, action, of string) string {
	return base64.RawURLEncoding.EncodeToString(consentMAC(cookie, "form "+action, nil, of))
}

// GenuineForm reports whether the token is that of [FormToken].
func GenuineForm(token, cookie, action, of string) bool {
	return cookie != "" && hmac.Equal([]byte(token), []byte(FormToken(cookie, action, of)))
}

// consentMAC authenticates a page or a form, or derives a code, by purpose.
func consentMAC(cookie, purpose string, page []byte, request string) []byte {
	h := hmac.New(sha256.New, []byte(cookie))
	_, _ = h.Write(append([]byte(purpose+"\x00"), page...)) // of fixed length for each purpose
	_, _ = io.WriteString(h, request)
	return h.Sum(nil)
}

// answersOf is the username in the key that counts the answers of a session. Its codes have none.
const answersOf = "answers"

// countConsent counts a code of the session, or with answersOf an answer, each under a limit of its own.
func (s *Service) countConsent(session, of string) error {
	keys := []ratelimit.Key{{ClientID: session, Username: of}}
	return tooMany(s.consents.take(s.opts.Clock(), keys), authorizationsLimit, "Too many authorizations in this session")
}

// answered reports whether the page of the code was answered before, as by a double click. The error is
// [ErrConsentUsed] if its code cannot be redeemed any more.
func (s *Service) answered(ctx context.Context, d secret.Digest, now time.Time) (before bool, err error) {
	stored, err := s.store.Code(ctx, d)
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, storeFailed("read authorization code", err)
	case stored.Claimed || s.codeExpired(&stored, now):
		return true, ErrConsentUsed
	}
	return true, nil
}

// codeExpired reports whether it is too late to redeem the code. It may be stored for longer.
func (s *Service) codeExpired(c *Code, now time.Time) bool {
	return !now.Before(c.ExpiresAt) || !now.Before(c.IssuedAt.Add(s.opts.CodeLifetime))
}
