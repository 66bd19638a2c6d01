package grants

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/limiter"
	"oauth-server/internal/oautherr"
	"oauth-server/internal/overload"
	"oauth-server/internal/secret"
)

// Errors of signing in.
var (
	// ErrSignIn means that the username or the password is wrong, without saying which.
	ErrSignIn = errors.New("grants: wrong username or password")
	// ErrUsername is returned together with ErrSignIn for a name that no user can have.
	ErrUsername = errors.New("grants: not a username")
	// ErrNoSession means that the session does not exist, has expired, or belongs to a user who no
	// longer exists. The user has to sign in.
	ErrNoSession = errors.New("grants: no such session")
)

// MinPasswordLength is the shortest password, in characters. Shorter imported passwords work too.
const MinPasswordLength = 8

// ValidatePassword returns an error that says why the user with that name cannot have the password.
// The password may be too short, too easy to guess, or unusable for signing in: a form cannot send
// invalid UTF-8, and a one-line field cannot send control characters.
func ValidatePassword(name, password string) error {
	switch {
	case utf8.RuneCountInString(password) < MinPasswordLength || len(password) > secret.MaxPasswordLength:
		return fmt.Errorf("password: needs at least %d characters, and at most %d bytes", MinPasswordLength, secret.MaxPasswordLength)
	case !utf8.ValidString(password):
		return errors.New("password: is not valid UTF-8")
	case strings.ContainsFunc(password, unicode.IsControl):
		return errors.New("password: holds a control character, such as a line break")
	}
	guessable, err := secret.Guessable(password, name)
	switch {
	case err != nil:
		return fmt.Errorf("password: %w", err)
	case guessable:
		return errors.New("password: is easy to guess; several words that do not belong together are hard to guess and easy to remember")
	}
	return nil
}

// checkPassword returns the user if the password is correct. It takes the same time whether or not
// the user exists. Over a limit of attempts it hashes nothing. It checks the limits again when a
// queued attempt gets its turn, because earlier attempts may have been counted in between. An
// attempt without a hashed password counts nowhere. Errors: [ErrSignIn], *[Error], *[oautherr.LimitedError].
func (s *Service) checkPassword(ctx context.Context, name typedName, password string, at place) (User, error) {
	key := name.key()
	g := s.guesses.guess(key, at)
	allowed := func() error { return cmp.Or(s.signIns.allowed(s.opts.Clock(), at, key), g.blocked()) }
	if err := allowed(); err != nil {
		return User{}, err
	}
	user, known, err := s.userTyped(ctx, name)
	exists := !errors.Is(err, ErrNotFound)
	if exists && err != nil {
		return User{}, storeFailed("check password", err)
	}
	g.of(&user, known)
	if err := g.slowed(); err != nil {
		return User{}, err
	}
	ok, err := s.verifyPassword(ctx, &user, exists, secret.Attempt{
		Name: key, Source: at.source(), Networks: limiter.NetworksAround(at.addr), Known: g.known, Password: password,
		Still: func() error { return cmp.Or(allowed(), g.slowed()) },
	})
	if err == nil {
		err = g.made(ctx)
	}
	switch {
	case err != nil:
		return User{}, s.notChecked(ctx, err)
	case !ok:
		return User{}, cmp.Or(s.signIns.count(s.opts.Clock(), at, key), g.failed(), name.wrong())
	}
	s.signIns.succeeded(s.opts.Clock(), at, key)
	s.remember(ctx, &user, g)
	s.renewHash(ctx, &user, password)
	return user, nil
}

// notChecked returns the error for an attempt if its password was not compared, or if the result
// must not be revealed.
func (s *Service) notChecked(ctx context.Context, err error) error {
	var limited *oautherr.LimitedError
	var busy *secret.BusyError
	switch {
	case errors.As(err, &limited):
		return limited
	case errors.As(err, &busy) && busy.Starved:
		return Overloaded(s.opts.Shedder.Starved(ctx))
	case errors.As(err, &busy):
		return tooBusy(busy)
	}
	return storeFailed("check password", err)
}

// renewHash replaces an imported password hash with one of this server, unless the password was
// changed in between. If it fails, the next correct password tries again.
func (s *Service) renewHash(ctx context.Context, user *User, password string) {
	if secret.Foreign(user.PasswordHash) == "" {
		return
	}
	hash, err := s.opts.Passwords.Hash(ctx, password)
	if err == nil {
		err = s.store.ChangeUser(ctx, user.Name, func(u *User) (clientcfg.Event, error) {
			if u.PasswordHash == user.PasswordHash {
				u.PasswordHash = hash
			}
			return clientcfg.Event{}, nil
		})
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		s.opts.Logger.InfoContext(ctx, "imported password hash not replaced yet", "error", err)
	}
}

// verifyPassword compares the password with the user's. It takes as long if the user does not
// exist.
func (s *Service) verifyPassword(ctx context.Context, user *User, exists bool, a secret.Attempt) (bool, error) {
	if !exists {
		return false, s.opts.Passwords.RejectAttempt(ctx, a)
	}
	return s.opts.Passwords.VerifyAttempt(ctx, user.PasswordHash, a)
}

// SignIn checks a password and starts a session. If the user has too many sessions, the oldest end.
// It returns the cookie value, and the store keeps only its digest. Errors: [ErrSignIn], *[Error],
// *[oautherr.LimitedError].
func (s *Service) SignIn(ctx context.Context, in SignIn) (cookieValue string, session Session, err error) {
	ctx, err = s.BeginRequest(ctx, &overload.Request{Class: overload.SignIn})
	if err != nil {
		return "", Session{}, err
	}
	defer s.EndRequest()
	now := s.opts.Now() // before the check, which may be slow: a revocation during the check must end the new session
	user, err := s.checkPassword(ctx, typed(in.Username), in.Password, place{addr: in.Remote})
	if err != nil {
		return "", Session{}, err
	}
	cookieValue = secret.New()
	session = Session{
		Key: secret.DigestOf(cookieValue).Key(), Username: user.Name, UserStamp: user.Stamp,
		CreatedAt: now, ExpiresAt: now.Add(s.opts.SessionLifetime),
	}
	if err := s.store.CreateSession(ctx, session, s.opts.SessionsPerUser); err != nil {
		return "", Session{}, storeFailed("create session", err)
	}
	return cookieValue, session, nil
}

// Session returns the session for a cookie value. Errors: [ErrNoSession], *[Error].
func (s *Service) Session(ctx context.Context, cookieValue string) (Session, error) {
	if cookieValue == "" {
		return Session{}, ErrNoSession
	}
	session, err := s.store.Session(ctx, secret.DigestOf(cookieValue).Key())
	switch {
	case errors.Is(err, ErrNotFound):
		return Session{}, ErrNoSession
	case err != nil:
		return Session{}, storeFailed("read session", err)
	case !s.opts.Now().Before(session.ExpiresAt):
		return Session{}, ErrNoSession
	}
	ok, err := s.signedIn(ctx, session.Username, session.UserStamp)
	switch {
	case err != nil:
		return Session{}, err
	case !ok:
		return Session{}, ErrNoSession
	}
	return session, nil
}

// SignOut ends the session of a cookie value. It returns nil if there is no such session. Errors:
// *[Error].
func (s *Service) SignOut(ctx context.Context, cookieValue string) error {
	if err := s.store.DeleteSession(ctx, secret.DigestOf(cookieValue).Key()); err != nil {
		return storeFailed("delete session", err)
	}
	return nil
}
