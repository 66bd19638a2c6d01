// Package precondition evaluates the conditional headers of requests to the admin API (RFC 9110 13.1),
// which keep one change from overwriting another.
package precondition

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"oauth-server/internal/admin/problem"
)

// State is the state of a resource.
type State struct {
	Doc     any   // the editable document as shown
	Exists  bool  // set through the API
	Version int64 // of its last change
}

// ETag returns the ETag of the state (RFC 9110 8.8.3): the version of its last change and a digest
// of its content. A new configuration file changes the digest but not the version.
func (st State) ETag() (string, error) {
	b, err := json.Marshal(st.Doc)
	if err != nil {
		return "", fmt.Errorf("admin: encode: %w", err)
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf(`"%d-%x"`, st.Version, sum[:8]), nil
}

// Conditions are the conditional headers of a request.
type Conditions struct {
	match, noneMatch []string // nil if absent
}

// Of returns the conditions in the header of a request.
func Of(h http.Header) Conditions {
	return Conditions{tags(h.Values("If-Match")), tags(h.Values("If-None-Match"))}
}

// tags splits a list of entity tags. Tags of this server contain no comma, so splitting other tags
// at a comma cannot make them match.
func tags(values []string) (out []string) {
	for _, tag := range strings.Split(strings.Join(values, ","), ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			out = append(out, tag)
		}
	}
	return out
}

// Given reports whether a condition prevents a change from overwriting another one.
func (c Conditions) Given() bool { return c.match != nil || c.noneMatch != nil }

// ErrMissing is returned for a change that could overwrite another one.
var ErrMissing = problem.New(http.StatusPreconditionRequired, problem.TypeNoCondition, "If-Match is required",
	"send If-Match with the ETag you read, to avoid overwriting another change; "+
		"to create a resource, send If-None-Match: *")

// ErrAbsent is returned for If-Match: * on a missing resource. It is not caused by a change.
var ErrAbsent = problem.New(http.StatusPreconditionFailed, problem.TypeStale, "Does not exist",
	"If-Match: * matches nothing because the resource does not exist; to create it, send If-None-Match: *")

// Check compares the conditions with the current state. Both headers use strong comparison, so a
// weak tag never matches for a change.
func (c Conditions) Check(st State) error {
	etag, err := st.ETag()
	if err != nil {
		return err
	}
	anything := slices.Contains(c.match, "*")
	if anything && !st.Exists {
		return ErrAbsent
	}
	if c.match != nil && !anything && !slices.Contains(c.match, etag) {
		return problem.New(http.StatusPreconditionFailed, problem.TypeStale, "Changed meanwhile",
			"it was changed since you read it: read it again, it is at %s now", etag)
	}
	if slices.Contains(c.noneMatch, etag) || st.Exists && slices.Contains(c.noneMatch, "*") {
		return problem.New(http.StatusPreconditionFailed, problem.TypeStale, "Already exists",
			"the resource exists (ETag %s): read it, and send If-Match to change it", etag)
	}
	return nil
}

// Unchanged reports whether the reader already has this state.
func (c Conditions) Unchanged(etag string) bool {
	weak := func(tag string) string { return strings.TrimPrefix(tag, "W/") }
	return slices.ContainsFunc(c.noneMatch, func(tag string) bool { return tag == "*" || weak(tag) == etag })
}

// Stale returns err as a failed condition if a change can have caused it, and nil otherwise.
func Stale(err error) *problem.Error {
	var p *problem.Error
	if errors.As(err, &p) && p.Type == problem.TypeStale && p != ErrAbsent {
		return p
	}
	return nil
}

// Since returns the version of the state that the conditions name, from the newest of their ETags.
// It returns 0 if the resource had not been changed, and [Unknown] if they name no state.
func (c Conditions) Since() int64 {
	since := int64(Unknown)
	for _, tag := range c.match {
		number, _, _ := strings.Cut(strings.TrimPrefix(tag, `"`), "-")
		if version, err := strconv.ParseInt(number, 10, 64); err == nil {
			since = max(since, version)
		}
	}
	return since
}

// Unknown is the version of a state that no ETag names.
const Unknown = -1
