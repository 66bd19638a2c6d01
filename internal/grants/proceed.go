package grants

import (
	"context"
	"crypto/rand"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/accounts"
	"oauth-server/internal/limiter/oautherr"
)

// Interaction is how the client wants the user to be prompted (OpenID Connect Core 1.0 3.1.2.1).
type Interaction struct {
	Silent  bool // prompt=none: show no page
	SignIn  bool // prompt=login: ask for the password even if the user is signed in
	Consent bool // prompt=consent, select_account: show the consent page, which names the signed-in user
	// MaxAge is the maximum time since the sign-in. Nil means no maximum.
	MaxAge *time.Duration
	Hint   string // login_hint: the user that the client expects, in the client's spelling
}

// maxMaxAge keeps a time plus max_age within range. It is a hundred years.
const maxMaxAge = 100 * 365 * 24 * 60 * 60

// readInteraction reads the parameters. It refuses values that this server does not know, because a
// client might rely on a value that was silently ignored.
func readInteraction(req *AuthorizeRequest) (in Interaction, bad *Error) {
	prompts := strings.Fields(req.Prompt)
	for _, value := range prompts {
		switch value {
		case "none":
			in.Silent = true
		case "login":
			in.SignIn = true
		case "consent", "select_account":
			in.Consent = true
		default:
			return in, fail(oautherr.InvalidRequest, "The prompt must be none, login, consent or select_account.")
		}
	}
	if in.Silent && slices.ContainsFunc(prompts, func(p string) bool { return p != "none" }) {
		return in, fail(oautherr.InvalidRequest, "The prompt none must be the only value.")
	}
	if req.MaxAge != "" {
		seconds, err := strconv.ParseUint(req.MaxAge, 10, 63)
		if err != nil {
			return in, fail(oautherr.InvalidRequest, "The max_age is not a number of seconds.")
		}
		age := time.Duration(min(seconds, maxMaxAge)) * time.Second
		in.MaxAge = &age
	}
	in.Hint = req.LoginHint
	return in, nil
}

// needsSignIn reports whether the user has to enter the password despite the session.
func (in *Interaction) needsSignIn(session *accounts.Session, now time.Time) bool {
	return in.SignIn || in.MaxAge != nil && (*in.MaxAge == 0 || now.Sub(session.CreatedAt) > *in.MaxAge)
}

// expects reports whether the client may have expected this user.
func (in *Interaction) expects(username string) bool {
	return in.Hint == "" || in.Hint == username || string(accounts.Typed(in.Hint)) == username
}

// Proven reports whether only the client can receive or use the response. If the client has no
// secret, a loopback address or a private-use scheme may belong to another program on the same
// device, so RFC 8252 8.6 asks for the consent page each time. An https address belongs to the
// client.
func (p *Prompt) Proven() bool {
	if !p.Client.Public {
		return true
	}
	u, err := url.Parse(p.RedirectURI)
	return err == nil && u.Scheme == "https"
}

// Next is the next step of an authorization request: the sign-in page if SignIn is set, a redirect
// with Code if Code is not empty, and otherwise the consent page.
type Next struct {
	SignIn bool
	Code   string
	// Known are the requested scopes that the user allowed before, for the consent page. It is
	// empty if there was no agreement.
	Known []string
}

// Proceed decides the next step of an authorization request. session is the browser's session from
// [Service.Session], or nil. Proceed issues a code if the user agreed to all requested scopes
// before, or if the client is first-party. Errors: *[RedirectError], *[oautherr.LimitedError], *[Error].
func (s *Service) Proceed(ctx context.Context, p *Prompt, session *accounts.Session) (Next, error) {
	now := s.opts.Now()
	switch {
	case session == nil || p.needsSignIn(session, now):
		if p.Silent {
			return Next{}, p.refused(oautherr.LoginRequired, "The user must sign in.")
		}
		return Next{SignIn: true}, nil
	case p.Silent && !p.expects(session.Username):
		return Next{}, p.refused(oautherr.InteractionRequired, "A user other than login_hint is signed in.")
	}
	known, _, err := s.agreement(ctx, p.Client, session.Username)
	if err != nil {
		return Next{}, err
	}
	agreed := p.Client.FirstParty || known.ID != "" && subset(p.Scopes, known.Scopes)
	switch {
	case agreed && p.Proven() && !p.Consent && p.expects(session.Username):
		var random [codeRandom]byte
		_, _ = rand.Read(random[:]) // crypto/rand.Read never fails
		code := SealCode(s.opts.Deriver, random[:])
		if err := s.issueCode(ctx, p, session, code, now, false); err != nil {
			return Next{}, err
		}
		return Next{Code: code}, nil
	case p.Silent:
		return Next{}, p.refused(oautherr.ConsentRequired, "The user must consent.")
	}
	var next Next
	for _, scope := range p.Scopes {
		if slices.Contains(known.Scopes, scope) {
			next.Known = append(next.Known, scope)
		}
	}
	return next, nil
}

func (p *Prompt) refused(code oautherr.Code, description string) error {
	return &RedirectError{RedirectURI: p.RedirectURI, State: p.State, Err: fail(code, description)}
}
