package limits

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
)

// perform asks the server for the effect of a change of one subject, asks for confirmation if it widens
// enforcement, and makes the change. It fails if the subject changed after it was read. POST promotes a
// candidate. body is nil for none. done is the new state, for a person: a sentence without its full stop.
func (l *limits) perform(ctx context.Context, s subject, method string, body map[string]any, done string) error {
	etag, err := l.current(ctx, s.path)
	if err != nil {
		return s.missing(err)
	}
	req := adminclient.Change{Method: method, Path: s.path, ETag: etag, For: l.lasts}
	if body != nil {
		req.Body = body
	}
	if method == http.MethodPost {
		req.Path += "/promote"
	}
	plan, err := rehearse[adminapi.Rehearsal](ctx, l, req)
	if err != nil {
		return s.missing(err)
	}
	l.noteEnd(&plan.Value)
	l.warn(&plan.Value.Effect)
	if l.check {
		return l.Answer(plan, command.Printable(plan.Value.Effect.Summary))
	}
	return s.missing(l.commit(ctx, req, &plan.Value.Effect, done))
}

// performMany is [limits.perform] for a change of several targets, which it shows.
func (l *limits) performMany(ctx context.Context, req adminclient.Change, done string) error {
	plan, err := rehearse[adminapi.Changed](ctx, l, req)
	if err != nil {
		return err
	}
	effect := cmp.Or(plan.Value.Effect, &adminapi.Effect{})
	l.warn(effect)
	switch {
	case l.Output == command.OutputJSON && (l.check || len(plan.Value.Changes) == 0):
		return l.JSON(plan)
	case len(plan.Value.Changes) == 0:
		return l.Answer(plan, nothingToChange)
	}
	if err := l.showPlan(&plan.Value); err != nil {
		return err
	}
	if l.check {
		return l.Answer(plan, "\n"+command.Printable(effect.Summary))
	}
	return l.commit(ctx, req, effect, done)
}

const nothingToChange = "There is nothing to change."

// showPlan writes the planned changes: to standard output for a person, to standard error for a
// script, which reads the result of the change from standard output.
func (l *limits) showPlan(planned *adminapi.Changed) error {
	if l.Output != command.OutputText {
		defer func(out io.Writer) { l.Out = out }(l.Out)
		l.Out = l.ErrOut
	}
	return l.Table(l.changedRows(planned)...)
}

// rehearse asks for the effect of a change without making it.
func rehearse[T any](ctx context.Context, l *limits, req adminclient.Change) (plan document[T], err error) {
	req.Validate = true
	err = l.send(ctx, req, &plan)
	return plan, err
}

// commit asks for confirmation if the change widens enforcement, and makes it.
func (l *limits) commit(ctx context.Context, req adminclient.Change, effect *adminapi.Effect, done string) error {
	if err := l.agree(effect); err != nil {
		return err
	}
	var changed json.RawMessage
	if err := l.send(ctx, req, &changed); err != nil {
		return err
	}
	return l.showChanged(changed, done)
}

// remove deletes a resource without an effect to ask for.
func (l *limits) remove(ctx context.Context, path string, query url.Values, done string) error {
	api, err := l.Connect()
	if err != nil {
		return err
	}
	if _, err := api.Change(ctx, adminclient.Change{Method: http.MethodDelete, Path: path, Query: query, ETag: "*"}, nil); err != nil {
		return err
	}
	return l.showChanged(nil, done)
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
		l.Note("The value being changed was temporary, until %s. The new one is permanent; to make it temporary, give --for.", command.DateTime(r.WasUntil))
	default:
		l.Note("The value being changed was temporary, until %s. The new one ends %s from now, and then the same value returns.", command.DateTime(r.WasUntil), l.lasts)
	}
}

// current returns the ETag of a resource; empty if the resource does not exist.
func (l *limits) current(ctx context.Context, path string) (string, error) {
	api, err := l.Connect()
	if err != nil {
		return "", err
	}
	etag, err := api.Get(ctx, path, nil, nil)
	var p *adminclient.ProblemError
	if errors.As(err, &p) && p.NotFound() && p.ETag != "" {
		return "", nil
	}
	return etag, err
}

func (l *limits) send(ctx context.Context, req adminclient.Change, into any) error {
	api, err := l.Connect()
	if err != nil {
		return err
	}
	_, err = api.Change(ctx, req, into)
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
	return l.Answer(changed, done+end+"; in effect on all instances within two seconds.")
}
