package servers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"oauth-server/lab/load"
)

// Pause waits, until the context ends at most.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

var errNever = errors.New("a change is not in force after a minute")

// Until asks again and again until the answer is yes.
func Until(ctx context.Context, every time.Duration, ask func() (bool, error)) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		if err := Pause(ctx, every); err != nil {
			return err
		}
	}
	return errNever
}

// Spent is the processor time of each server, in seconds, while do runs, and how long that took.
func Spent(do func() error, all ...*Server) (processor, elapsed float64, err error) {
	before, err := processorOf(all)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return 0, 0, err
	}
	elapsed = time.Since(began).Seconds()
	after, err := processorOf(all)
	return (after - before).Seconds() / float64(len(all)), elapsed, err
}

func processorOf(all []*Server) (sum time.Duration, err error) {
	for _, s := range all {
		used, failed := s.Processor()
		sum, err = sum+used, errors.Join(err, failed)
	}
	return sum, err
}

// Refreshes is a source that refreshes tokens again and again. Each is used by one request at a time.
type Refreshes struct {
	Client string
	Tokens []string

	server *Server
	left   int // requests
	err    error
}

// SignIn gets so many refresh tokens of a user.
func (r *Refreshes) SignIn(ctx context.Context, s *Server, user, password string, n int) error {
	for range n {
		a, err := s.Token(ctx, r.Client, SignIn(user, password))
		if err != nil {
			return err
		}
		r.Tokens = append(r.Tokens, a.RefreshToken)
	}
	return nil
}

// Run refreshes the tokens at a server, so many at once: n times, or for as long as d.
func (r *Refreshes) Run(ctx context.Context, s *Server, atOnce, n int, d time.Duration) (*load.Result, error) {
	r.server, r.left, r.err = s, n, nil
	return s.Saturate(ctx, atOnce, d, r, &r.err)
}

// Next implements [load.Source].
func (r *Refreshes) Next() (load.Call, bool) {
	if r.left == 0 || r.err != nil || len(r.Tokens) == 0 {
		return load.Call{}, false
	}
	r.left--
	token := r.Tokens[0]
	r.Tokens = r.Tokens[1:]
	form := "grant_type=refresh_token&refresh_token=" + token
	return load.Call{Request: r.server.Request(r.Client, r.server.Secrets[r.Client], form)}, true
}

// Done implements [load.Source].
func (r *Refreshes) Done(_ load.Call, status int, body []byte) {
	token := load.RefreshToken(body)
	if token == "" {
		r.err = fmt.Errorf("a refresh is answered by %d: %s", status, body)
		return
	}
	r.Tokens = append(r.Tokens, token)
}

// Saturate sends requests of a source, so many at once, until the source or the time ends. The source notes its
// failure. This program shares the processors with the server.
func (s *Server) Saturate(ctx context.Context, atOnce int, d time.Duration, source load.Source, failure *error) (*load.Result, error) {
	results, err := load.Run(ctx, load.Options{Address: s.Address, Core: -1},
		load.Stream{Phases: load.Steady(0, d), Closed: atOnce, Source: source})
	if err == nil {
		err = *failure
	}
	if err != nil {
		return nil, err
	}
	return results[0], nil
}
