package admin

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/problem"
	"oauth-server/internal/clientcfg"
)

// state is the state of a resource.
type state struct {
	doc     any   // the editable document as shown
	exists  bool  // set through the API
	version int64 // of its last change
}

// etag returns the ETag of the state (RFC 9110 8.8.3): the version of its last change and a digest
// of its content. A new configuration file changes the digest but not the version.
func (st state) etag() (string, error) {
	b, err := json.Marshal(st.doc)
	if err != nil {
		return "", fmt.Errorf("admin: encode: %w", err)
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf(`"%d-%x"`, st.version, sum[:8]), nil
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
var errNoCondition = problem.New(http.StatusPreconditionRequired, problem.TypeNoCondition, "If-Match is required",
	"send If-Match with the ETag you read, to avoid overwriting another change; "+
		"to create a resource, send If-None-Match: *")

// errAbsent is returned for If-Match: * on a missing resource. It is not caused by a change.
var errAbsent = problem.New(http.StatusPreconditionFailed, problem.TypeStale, "Does not exist",
	"If-Match: * matches nothing because the resource does not exist; to create it, send If-None-Match: *")

// check compares the conditions with the current state. Both headers use strong comparison, so a
// weak tag never matches for a change.
func (c conditions) check(st state) error {
	etag, err := st.etag()
	if err != nil {
		return err
	}
	anything := slices.Contains(c.match, "*")
	if anything && !st.exists {
		return errAbsent
	}
	if c.match != nil && !anything && !slices.Contains(c.match, etag) {
		return problem.New(http.StatusPreconditionFailed, problem.TypeStale, "Changed meanwhile",
			"it was changed since you read it: read it again, it is at %s now", etag)
	}
	if slices.Contains(c.noneMatch, etag) || st.exists && slices.Contains(c.noneMatch, "*") {
		return problem.New(http.StatusPreconditionFailed, problem.TypeStale, "Already exists",
			"the resource exists (ETag %s): read it, and send If-Match to change it", etag)
	}
	return nil
}

// unchanged reports whether the reader already has this state.
func (c conditions) unchanged(etag string) bool {
	weak := func(tag string) string { return strings.TrimPrefix(tag, "W/") }
	return slices.ContainsFunc(c.noneMatch, func(tag string) bool { return tag == "*" || weak(tag) == etag })
}

// mostConflicts is how many changes a conflict error lists at most.
const mostConflicts = 10

// explained adds the changes since the state that the conditions name to a conflict error. It reads
// them from the trail. If that fails, it returns the error unchanged.
func (s *Server) explained(c *call, ch *change, err error) error {
	p := stale(err)
	if p == nil {
		return err
	}
	ctx := context.WithoutCancel(c.Request().Context())
	since := ch.conditions.since()
	changes, failed := s.changesSince(ctx, ch.target.Name(), since)
	if failed != nil {
		return err
	}
	if len(changes) == 0 && stateIn(ch.before, ch.target).version <= since {
		p.Detail += "; no operator changed it: a temporary value has ended, or instances have different configuration files"
	}
	return because(p, ch.target.Name(), changes, s.o.Now())
}

// stale returns err as a failed condition if a change can have caused it, and nil otherwise.
func stale(err error) *problem.Error {
	var p *problem.Error
	if errors.As(err, &p) && p.Type == problem.TypeStale && p != errAbsent {
		return p
	}
	return nil
}

// because adds to p the changes that caused a conflict, newest first.
func because(p *problem.Error, target string, changes []adminapi.AuditEntry, now time.Time) *problem.Error {
	p.Conflict = &adminapi.Conflict{Target: target, Now: now.UTC(), Changes: changes[:min(len(changes), mostConflicts)]}
	if p.Conflict.Changes == nil {
		p.Conflict.Changes = []adminapi.AuditEntry{}
	}
	if len(changes) > 0 {
		e := &changes[0]
		p.Detail += fmt.Sprintf("; last change: %s by %s at %s (change %d)", e.Action, adminapi.Who(&e.Actor), e.At.UTC().Format(time.RFC3339), e.Version)
	}
	return p
}

// since returns the version of the state that the conditions name, from the newest of their ETags.
// It returns 0 if the resource had not been changed, and unknown if they name no state.
func (c conditions) since() int64 {
	since := int64(unknownVersion)
	for _, tag := range c.match {
		number, _, _ := strings.Cut(strings.TrimPrefix(tag, `"`), "-")
		if version, err := strconv.ParseInt(number, 10, 64); err == nil {
			since = max(since, version)
		}
	}
	return since
}

const unknownVersion = -1

// changesSince returns the changes of a target after a version, newest first. After an unknown
// version it returns only the last one. A removed target has version 0, like one that was never
// changed, so changes before the last removal are not included.
func (s *Server) changesSince(ctx context.Context, target string, since int64) (changes []adminapi.AuditEntry, err error) {
	events, err := s.o.Events.Events(ctx, clientcfg.EventQuery{Target: target, Limit: mostConflicts, Limits: true})
	for i := range events {
		e := adminapi.ShowEvent(of(&events[i], target))
		if e.Version <= since || since == 0 && e.Unreadable == "" && string(e.After) == "null" {
			break
		}
		if changes = append(changes, e); since == unknownVersion {
			break
		}
	}
	return changes, err
}

// of returns the part of an event that concerns one target.
func of(e *clientcfg.Event, target string) *clientcfg.Event {
	one := *e
	one.More = nil
	for i := range e.More {
		if e.More[i].Target == target {
			one.Target, one.Before, one.After = target, e.More[i].Before, e.More[i].After
		}
	}
	return &one
}

// explained is the same for clients and users. A user has no version, so it adds the last change in
// the trail.
func (r *registrar) explained(err error, target string, changes int64) error {
	p := stale(err)
	if p == nil {
		return err
	}
	events, failed := r.server.o.Events.Events(context.WithoutCancel(r.Request().Context()), clientcfg.EventQuery{
		Target: target, Limit: int(min(max(changes, 1), mostConflicts)),
	})
	if failed != nil {
		return err
	}
	return because(p, target, showEvents(events), r.server.o.Now())
}
