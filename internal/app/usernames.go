package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// checkCollision returns a *[CollisionError] if a user has a name of that canonical form. It reads all
// users, because those of earlier releases cannot be found by it.
func checkCollision(ctx context.Context, reg grants.UserRegistry, name string) error {
	users, err := reg.Users(ctx)
	if err != nil {
		return err
	}
	for _, u := range users {
		if canonical, err := username.Canonical(u.Name); err == nil && canonical == name {
			return &CollisionError{u.Name}
		}
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
func CheckUsers(users []grants.StoredUser) []NameReport {
	same := map[string][]string{}
	for _, u := range users {
		if canonical, err := username.Canonical(u.Name); err == nil {
			same[canonical] = append(same[canonical], u.Name)
		}
	}
	reports := []NameReport{}
	for _, u := range users {
		r := NameReport{Username: u.Name}
		var err error
		if r.Canonical, err = username.Canonical(u.Name); err == nil {
			r.Collides = slices.DeleteFunc(slices.Clone(same[r.Canonical]), func(other string) bool { return other == u.Name })
		}
		if r.Problem = problem(&r, err, u.Err); r.Problem != "" {
			reports = append(reports, r)
		}
	}
	return reports
}

// problem describes what is wrong, empty if nothing is: without is why the name has no canonical form,
// unreadable why the user cannot be read.
func problem(r *NameReport, without, unreadable error) string {
	var problems []string
	if unreadable != nil {
		problems = append(problems, "cannot sign in: "+unreadable.Error())
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
