package admin

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// etagOf returns the ETag of a resource (RFC 9110 8.8.3): the version of its last change and a
// digest of its content. A new configuration file changes the digest but not the version.
func etagOf(version int64, doc any) (string, error) {
	b, err := json.Marshal(doc)
	if err != nil {
		return "", fmt.Errorf("admin: encode: %w", err)
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf(`"%d-%x"`, version, sum[:8]), nil
}

// conditions are the conditional headers of a request (RFC 9110 13.1).
type conditions struct {
	match, noneMatch []string // nil if absent
}

func conditionsOf(h http.Header) conditions {
	return conditions{tags(h.Values("If-Match")), tags(h.Values("If-None-Match"))}
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

// given reports whether a condition prevents a change from overwriting another one.
func (c conditions) given() bool { return c.match != nil || c.noneMatch != nil }

// errNoCondition is returned for a change that could overwrite another one.
var errNoCondition = problem(http.StatusPreconditionRequired, typeNoCondition, "If-Match is needed",
	"send If-Match with the ETag that you read, so that no other change is overwritten; "+
		"to make what does not exist yet, send If-None-Match: *")

// errAbsent is returned for If-Match: * on a missing resource. It is not caused by a change.
var errAbsent = problem(http.StatusPreconditionFailed, typeStale, "Not there",
	"nothing is set here yet, so there is nothing that If-Match: * could match; to make it, send If-None-Match: *")

// check compares the conditions with the current state. Both headers use strong comparison, so a
// weak tag never matches for a change.
func (c conditions) check(etag string, exists bool) error {
	anything := slices.Contains(c.match, "*")
	if anything && !exists {
		return errAbsent
	}
	if c.match != nil && !anything && !slices.Contains(c.match, etag) {
		return problem(http.StatusPreconditionFailed, typeStale, "Changed meanwhile",
			"this is not what you read: read it again, it is at %s now", etag)
	}
	if slices.Contains(c.noneMatch, etag) || exists && slices.Contains(c.noneMatch, "*") {
		return problem(http.StatusPreconditionFailed, typeStale, "Exists already",
			"there is one, at %s: read it, and send If-Match to change it", etag)
	}
	return nil
}

// unchanged reports whether the reader already has this state.
func (c conditions) unchanged(etag string) bool {
	weak := func(tag string) string { return strings.TrimPrefix(tag, "W/") }
	return slices.ContainsFunc(c.noneMatch, func(tag string) bool { return tag == "*" || weak(tag) == etag })
}
