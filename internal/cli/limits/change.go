package limits

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
)

// change is a change of one resource.
type change struct {
	read   string // path of the resource to compare by ETag
	method string
	path   string // path to call; empty means read
	body   any
	done   string // the new state, for a person: a sentence without its full stop
}

// perform asks the server for the effect of a change, asks for confirmation if it widens
// enforcement, and makes the change. It fails if the resource changed after it was read.
func (l *limits) perform(ctx context.Context, ch change) error {
	api, err := l.Connect()
	if err != nil {
		return err
	}
	etag, err := l.current(ctx, api, ch.read)
	if err != nil {
		return err
	}
	req := adminclient.Change{
		Method: ch.method, Path: ch.path, ETag: etag, Reason: l.reason, For: l.lasts, Validate: true, Body: ch.body,
	}
	if req.Path == "" {
		req.Path = ch.read
	}
	var raw json.RawMessage
	if err := l.send(ctx, api, req, &raw); err != nil {
		return err
	}
	var rehearsal adminapi.Rehearsal
	if err := json.Unmarshal(raw, &rehearsal); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	l.noteEnd(&rehearsal)
	l.warn(&rehearsal.Effect)
	if l.check {
		return l.Answer(raw, command.Printable(rehearsal.Effect.Summary))
	}
	if err := l.agree(&rehearsal.Effect); err != nil {
		return err
	}
	req.Validate = false
	var changed json.RawMessage
	if err := l.send(ctx, api, req, &changed); err != nil {
		return err
	}
	return l.showChanged(changed, ch.done)
}

// forTime says how long a change lasts, for a sentence; empty if it is permanent.
func forTime(lasts string) string {
	if lasts == "" {
		return ""
	}
	return ", for " + lasts
}

// untilTime says when a change ends, for a sentence; empty if it is permanent.
func untilTime(end time.Time) string {
	if end.IsZero() {
		return ""
	}
	return ", until " + command.DateTime(end)
}

// noteEnd reports that the setting being changed was temporary.
func (l *limits) noteEnd(r *adminapi.Rehearsal) {
	switch {
	case r.WasUntil.IsZero():
	case r.Until.IsZero():
		l.Note("What is changed here was to end at %s. With this change it lasts; to let it end, give --for.", command.DateTime(r.WasUntil))
	default:
		l.Note("What is changed here was to end at %s. With this change it ends %s from now, and is then as it would have been.", command.DateTime(r.WasUntil), l.lasts)
	}
}

// current returns the ETag of a resource; empty if the resource does not exist.
func (l *limits) current(ctx context.Context, api *adminclient.Client, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	etag, err := api.Get(ctx, path, nil, nil)
	var p *adminclient.ProblemError
	if errors.As(err, &p) && p.NotFound() && p.ETag != "" {
		return "", nil
	}
	return etag, err
}

func (l *limits) send(ctx context.Context, api *adminclient.Client, req adminclient.Change, into *json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	_, err := api.Change(ctx, req, into)
	return overtaken(err)
}

// warn lists the clients with possibly misspelt names.
func (l *limits) warn(effect *adminapi.Effect) {
	for _, w := range effect.Warnings {
		l.Note("warning: %s", command.Printable(w))
	}
}

// agree shows which clients a widening change would have denied, and asks for confirmation. It also
// shows a change that leaves requests of some grants without a limit. It returns nil if there is
// nothing to confirm.
func (l *limits) agree(effect *adminapi.Effect) error {
	if effect.Widens || len(effect.Unlimited) > 0 {
		l.Note("%s", command.Printable(effect.Summary))
	}
	if !effect.Widens || l.yes {
		return nil
	}
	return l.Confirm()
}

// showChanged writes the server's answer to a change for a script, or done for a person, with its
// end and when it takes effect.
func (l *limits) showChanged(changed json.RawMessage, done string) error {
	if len(changed) == 0 {
		changed = json.RawMessage("{}")
	}
	var of struct {
		Until time.Time `json:"until"` // of a change of several targets
		Meta  struct {
			Until time.Time `json:"until"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(changed, &of); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	end := untilTime(cmp.Or(of.Until, of.Meta.Until))
	if end == "" { // the answer to a removal is empty
		end = forTime(l.lasts)
	}
	return l.Answer(changed, done+end+"; every instance follows within two seconds.")
}

// patchPolicy changes fields of a client's policy.
func (l *limits) patchPolicy(ctx context.Context, clientID string, patch map[string]any, done string) error {
	return l.perform(ctx, change{read: policyPath(clientID), method: http.MethodPatch, body: patch, done: done})
}

// patchSettings changes fields of the settings for all clients.
func (l *limits) patchSettings(ctx context.Context, patch map[string]any, done string) error {
	return l.perform(ctx, change{read: "/settings", method: http.MethodPatch, body: patch, done: done})
}
