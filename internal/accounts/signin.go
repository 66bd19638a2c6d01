package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/limiter/attempts"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/secret"
	"oauth-server/internal/secret/username"
	"oauth-server/internal/store"
	"oauth-server/internal/strict/fielderr"
)

// Errors of signing in.
var (
	// ErrSignIn means that the username or the password is wrong, without saying which.
	ErrSignIn = errors.New("accounts: wrong username or password")
	// ErrUsername is returned together with ErrSignIn for a name that no user can have.
	ErrUsername = errors.New("accounts: not a username")
	// ErrNoSession means that the session does not exist, has expired, or belongs to a user who no
	// longer exists. The user must sign in.
	ErrNoSession = errors.New("accounts: no such session")
)

// minPasswordLength is the shortest password, in characters. Shorter imported passwords work too.
const minPasswordLength = 8

// ValidatePassword returns an error that says why the user with that name cannot have the password.
// The password may be too short, too easy to guess, or unusable for signing in: a form cannot send
// invalid UTF-8, and a one-line field cannot send control characters. Errors: [fielderr.Errors].
func ValidatePassword(name, password string) error {
	var errs fielderr.Errors
	switch {
	case utf8.RuneCountInString(password) < minPasswordLength || len(password) > secret.MaxPasswordLength:
		errs.Add("password", "must have at least %d characters and at most %d bytes", minPasswordLength, secret.MaxPasswordLength)
	case !utf8.ValidString(password):
		errs.Add("password", "is not valid UTF-8")
	case strings.ContainsFunc(password, unicode.IsControl):
		errs.Add("password", "contains a control character, such as a line break")
	}
	if len(errs) > 0 {
		return errs
	}
	switch guessable, err := secret.Guessable(password, name); {
	case err != nil:
		errs.Add("password", "%v", err)
	case guessable:
		errs.Add("password", "is easy to guess; use several unrelated words")
	}
	return errs.Err()
}

// Name is a username as typed, in the form in which attempts are counted and queued before it is
// known whether the user exists: the canonical username, or a digest after a space if no user can
// have the name. It is never longer than a digest or a username.
type Name string

// Typed returns the Name for what somebody typed.
func Typed(name string) Name {
	if canonical, err := username.Canonical(name); err == nil {
		return Name(canonical)
	}
	return Name(" " + secret.DigestOf(name).String())
}

// possible reports whether a user can have this name.
func (n Name) possible() bool { return n[0] != ' ' }

// user returns the user with a typed name, and the Known of that name. The reads depend only on the
// name, so the time does not reveal whether the user exists. It returns the zero values if there is
// no user.
func (s *Service) user(ctx context.Context, name Name) (u User, k Known, exists bool, err error) {
	if !name.possible() {
		return u, k, false, nil
	}
	u, err = s.Users.User(ctx, string(name))
	exists = err == nil
	if exists || errors.Is(err, store.ErrNotFound) {
		k, err = s.Records.Known(ctx, string(name))
	}
	return u, k, exists, err
}

// CheckPassword returns the user if the password is correct. It takes the same time whether or not
// the user exists. Over a limit of attempts it hashes nothing. It checks the limits again when a
// queued attempt gets its turn, because earlier attempts may have been counted in between. An
// attempt without a hashed password counts nowhere. Errors: [ErrSignIn], *[oautherr.LimitedError],
// *[secret.BusyError]. Any other error is a failure of the store.
func (s *Service) CheckPassword(ctx context.Context, name Name, password string, at attempts.Place) (User, error) {
	key, now := string(name), s.Clock
	rightFrom := ratelimit.Key{ClientID: at.Source(), Username: key} // correct passwords count too, because hashing is expensive
	g := s.guess(key, at)
	allowed := func() error {
		return cmp.Or(s.failures.Blocked(now(), at, key), attempts.TooMany(s.successes.Wait(now(), rightFrom),
			"passwords.sign_ins_per_minute", "Too many sign-ins with this username from this address"), g.blocked())
	}
	if err := allowed(); err != nil {
		return User{}, err
	}
	user, known, exists, err := s.user(ctx, name)
	if err != nil {
		return User{}, fmt.Errorf("check password: %w", err)
	}
	g.of(&user, known)
	if err := g.slowed(); err != nil {
		return User{}, err
	}
	ok, err := s.verify(ctx, &user, exists, secret.Attempt{
		Name: key, Source: at.Source(), Networks: limiter.NetworksAround(at.Addr), Known: g.known, Password: password,
		Still: func() error { return cmp.Or(allowed(), g.slowed()) },
	})
	if err == nil {
		err = g.made(ctx)
	}
	switch {
	case err != nil:
		return User{}, fmt.Errorf("check password: %w", err)
	case !ok && !name.possible():
		err = fmt.Errorf("%w: %w", ErrSignIn, ErrUsername)
	case !ok:
		err = ErrSignIn
	}
	if !ok {
		return User{}, cmp.Or(s.failures.Count(now(), at, key), g.failed(), err)
	}
	s.failures.Prove(now(), at, key)
	s.successes.Take(now(), rightFrom)
	g.succeeded(ctx, &user)
	s.renewHash(ctx, &user, password)
	return user, nil
}

// verify compares the password with the user's. It takes as long if the user does not exist.
func (s *Service) verify(ctx context.Context, user *User, exists bool, a secret.Attempt) (bool, error) {
	if !exists {
		return false, s.Passwords.RejectAttempt(ctx, a)
	}
	return s.Passwords.VerifyAttempt(ctx, user.PasswordHash, a)
}

// renewHash replaces an imported password hash with one of this server, unless the password was
// changed in between. If it fails, the next correct password tries again.
func (s *Service) renewHash(ctx context.Context, user *User, password string) {
	if secret.Foreign(user.PasswordHash) == "" {
		return
	}
	hash, err := s.Passwords.Hash(ctx, password)
	if err == nil {
		err = s.Users.ChangeUser(ctx, user.Name, func(u *User) (clientcfg.Event, error) {
			if u.PasswordHash == user.PasswordHash {
				u.PasswordHash = hash
			}
			return clientcfg.Event{}, nil
		})
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.Logger.InfoContext(ctx, "imported password hash not replaced", slog.Any("error", err))
	}
}

// SignIn is a username and a password as typed, with the address that they came from.
type SignIn struct {
	Username string
	Password string
	Remote   netip.Addr
}

// SignIn checks a password and starts a session. If the user has too many sessions, the oldest end.
// It returns the cookie value, and the store keeps only its digest. Errors: those of
// [Service.CheckPassword].
func (s *Service) SignIn(ctx context.Context, in SignIn) (cookieValue string, session Session, err error) {
	now := s.Now() // before the check, which may be slow: a revocation during the check must end the new session
	user, err := s.CheckPassword(ctx, Typed(in.Username), in.Password, attempts.Place{Addr: in.Remote})
	if err != nil {
		return "", Session{}, err
	}
	cookieValue = secret.New()
	session = Session{
		Key: secret.DigestOf(cookieValue).Key(), Username: user.Name, UserStamp: user.Stamp,
		CreatedAt: now, ExpiresAt: now.Add(s.SessionLifetime),
	}
	if err := s.Records.CreateSession(ctx, session, s.SessionsPerUser); err != nil {
		return "", Session{}, fmt.Errorf("create session: %w", err)
	}
	return cookieValue, session, nil
}

// Session returns the session for a cookie value. Errors: [ErrNoSession], or [store.ErrNotFound] if its
// user does not exist. Any other error is a failure of the store.
func (s *Service) Session(ctx context.Context, cookieValue string) (Session, error) {
	if cookieValue == "" {
		return Session{}, ErrNoSession
	}
	session, err := s.Records.Session(ctx, secret.DigestOf(cookieValue).Key())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Session{}, ErrNoSession
	case err != nil:
		return Session{}, fmt.Errorf("read session: %w", err)
	case !s.Now().Before(session.ExpiresAt):
		return Session{}, ErrNoSession
	}
	user, err := s.Users.User(ctx, session.Username)
	switch {
	case err != nil:
		return Session{}, fmt.Errorf("read user: %w", err)
	case !user.Stamp.Accepts(session.UserStamp):
		return Session{}, ErrNoSession
	}
	return session, nil
}

// SignOut ends the session of a cookie value. It returns nil if there is no such session.
func (s *Service) SignOut(ctx context.Context, cookieValue string) error {
	return s.Records.DeleteSession(ctx, secret.DigestOf(cookieValue).Key())
}
