package limits

import (
	"context"
	"encoding/json"
	"io"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/admin/adminclient"
	"oauth-server/internal/cli/command"
)

// performMany asks the server for the effect of a change of several targets, shows it, asks for
// confirmation if it widens enforcement, and makes the change.
func (l *limits) performMany(ctx context.Context, req adminclient.Change, done string) error {
	raw, planned, err := l.rehearseMany(ctx, req)
	if err != nil {
		return err
	}
	l.warn(planned.Effect)
	switch {
	case l.Output == command.OutputJSON && (l.check || len(planned.Changes) == 0):
		return l.JSON(raw)
	case len(planned.Changes) == 0:
		return l.Answer(raw, nothingToChange)
	}
	if err := l.showPlan(planned); err != nil {
		return err
	}
	if l.check {
		return l.Answer(raw, "\n"+command.Printable(planned.Effect.Summary))
	}
	if err := l.agree(planned.Effect); err != nil {
		return err
	}
	req.Reason = l.reason
	api, err := l.Connect()
	if err != nil {
		return err
	}
	var changed json.RawMessage
	if err := l.send(ctx, api, req, &changed); err != nil {
		return err
	}
	return l.showChanged(changed, done)
}

const nothingToChange = "There is nothing to change."

// rehearseMany returns the effect of a change of several targets without making it.
func (l *limits) rehearseMany(ctx context.Context, req adminclient.Change) (raw json.RawMessage, planned *adminapi.Changed, err error) {
	api, err := l.Connect()
	if err != nil {
		return nil, nil, err
	}
	req.Validate, req.Reason = true, l.reason
	if err := l.send(ctx, api, req, &raw); err != nil {
		return nil, nil, err
	}
	planned, err = decodeChanged(raw)
	return raw, planned, err
}

// showPlan writes the planned changes: to standard output for a person, to standard error for a
// script, which reads the result of the change from standard output.
func (l *limits) showPlan(planned *adminapi.Changed) error {
	if l.Output != command.OutputText {
		defer func(out io.Writer) { l.Out = out }(l.Out)
		l.Out = l.ErrOut
	}
	return l.Table(l.changedRows(planned)...)
}
