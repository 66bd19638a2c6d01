package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"oauth-server/internal/grants"
	"oauth-server/internal/username"
)

// CollisionError is returned for a new user whose name is that of another one. It is a
// [grants.ErrExists].
type CollisionError struct {
	Stored string // name of the other, which may not be canonical
}

// Error implements error.
func (e *CollisionError) Error() string { return fmt.Sprintf("there is a user %q", e.Stored) }

// Unwrap returns [grants.ErrExists].
func (*CollisionError) Unwrap() error { return grants.ErrExists }

// Names knows the users of earlier releases whose names are not canonical, so that a new user can be
// compared with them: they cannot be found by the form that they would have. It is safe for concurrent
// use. The zero value is ready.
type Names struct {
	mu   sync.Mutex
	read time.Time
	odd  map[string]string // stored names by canonical ones
}

// namesFor is how long what was read is used. Only an earlier release makes more such users.
const namesFor = time.Minute

// check returns a *[CollisionError] if a user has a name of that canonical form.
func (n *Names) check(ctx context.Context, reg Store, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.odd == nil || time.Since(n.read) > namesFor {
		users, err := reg.Users(ctx)
		if err != nil {
			return err
		}
		n.read, n.odd = time.Now(), map[string]string{}
		for _, u := range users {
			if canonical, err := username.Canonical(u.Name); err == nil && canonical != u.Name {
				n.odd[canonical] = u.Name
			}
		}
	}
	if stored, taken := n.odd[name]; taken {
		return &CollisionError{stored}
	}
	switch _, err := reg.User(ctx, name); {
	case err == nil || errors.Is(err, grants.ErrUnreadableUser):
		return &CollisionError{name}
	case !errors.Is(err, grants.ErrNotFound):
		return err
	}
	return nil
}

// NameReport is a user who cannot be read, or whose name cannot be given to a new user, because an earlier
// release did not bring names into one form.
type NameReport struct {
	Username string `json:"username"`
	// Canonical is the form that the name would have now; empty if it cannot have one.
	Canonical string `json:"canonical,omitempty"`
	// Collides are the other users whose names have the same form.
	Collides []string `json:"collides,omitempty"`
	// Problem says what is wrong, and what follows.
	Problem string `json:"problem"`
}

// CheckUsers reports the users who cannot be read, and the names that are not canonical, collide, or mix
// scripts, in the order of the users.
func CheckUsers(users []User) []NameReport {
	same := map[string][]string{}
	for _, u := range users {
		if canonical, err := username.Canonical(u.Username); err == nil {
			same[canonical] = append(same[canonical], u.Username)
		}
	}
	reports := []NameReport{}
	for _, u := range users {
		r := NameReport{Username: u.Username}
		var err error
		if r.Canonical, err = username.Canonical(u.Username); err == nil {
			r.Collides = slices.DeleteFunc(slices.Clone(same[r.Canonical]), func(other string) bool { return other == u.Username })
		}
		if r.Problem = problem(&r, err, u.Unreadable); r.Problem != "" {
			reports = append(reports, r)
		}
	}
	return reports
}

// problem describes what is wrong, empty if nothing is: without is why the name has no canonical form,
// unreadable why the user cannot be read.
func problem(r *NameReport, without error, unreadable string) string {
	var problems []string
	if unreadable != "" {
		problems = append(problems, "cannot sign in: "+unreadable)
	}
	if without != nil {
		problems = append(problems, "signs in only if typed exactly so", strings.TrimPrefix(without.Error(), "username: "))
		return strings.Join(problems, "; ")
	}
	if len(r.Collides) > 0 {
		problems = append(problems, "is one name with "+strings.Join(r.Collides, ", "))
	}
	if r.Username != r.Canonical {
		problems = append(problems, "signs in only if typed exactly so")
	}
	if err := username.Unmixed(r.Canonical); err != nil {
		problems = append(problems, strings.TrimPrefix(err.Error(), "username: "))
	}
	return strings.Join(problems, "; ")
}
