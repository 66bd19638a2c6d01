package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/adminclient"
	"oauth-server/internal/clientcfg"
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
	case l.output == outputJSON && (l.check || len(planned.Changes) == 0):
		return l.json(raw)
	case len(planned.Changes) == 0:
		return l.answer(raw, nothingToChange)
	}
	if err := l.showPlan(planned); err != nil {
		return err
	}
	if l.check {
		return l.answer(raw, "\n"+printable(planned.Effect.Summary))
	}
	if err := l.agree(planned.Effect); err != nil {
		return err
	}
	req.Reason = l.reason
	api, err := l.connect()
	if err != nil {
		return err
	}
	var changed json.RawMessage
	if err := l.send(ctx, api, req, &changed); err != nil {
		return err
	}
	return l.showChanged(changed, done)
}

// version returns the ETag of everything that operators have set.
func (l *limits) version(ctx context.Context) (etag string, err error) {
	api, err := l.connect()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	return api.Get(ctx, "/changes", url.Values{"limit": {"1"}}, nil)
}

// checkLabelled rejects labels given together with a client, and invalid labels.
func checkLabelled(cmd *cobra.Command, args, labels []string) error {
	if len(args) > 0 {
		return usagef("limits %s: --label chooses the clients, so CLIENT %q contradicts it", cmd.Name(), args[0])
	}
	return checkSelectors(labels)
}

// patchLabelled changes fields of the policies of all clients with these labels, in one change.
func (l *limits) patchLabelled(cmd *cobra.Command, args, labels []string, patch map[string]any) error {
	ctx := cmd.Context()
	if err := checkLabelled(cmd, args, labels); err != nil {
		return err
	}
	etag, err := l.version(ctx)
	if err != nil {
		return err
	}
	all, err := l.clients(ctx, labels...)
	if err != nil {
		return err
	}
	body := adminapi.Patches{For: l.lasts}
	for _, raw := range all {
		var c adminapi.Client
		if err := json.Unmarshal(raw, &c); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		body.Changes = append(body.Changes, adminapi.TargetPatch{Target: clientcfg.PolicyTarget(c.ClientID), Patch: patch})
	}
	n := len(body.Changes)
	if n == 0 {
		return usagef("--label: no client has %s", strings.Join(labels, " and "))
	}
	done := fmt.Sprintf("The policies of %d %s with %s are now set", n, plural(n, "client"), strings.Join(labels, " and "))
	return l.performMany(ctx, adminclient.Change{Method: http.MethodPost, Path: "/changes", ETag: etag, Body: body}, done)
}

const nothingToChange = "There is nothing to change."

// rehearseMany returns the effect of a change of several targets without making it.
func (l *limits) rehearseMany(ctx context.Context, req adminclient.Change) (raw json.RawMessage, planned *adminapi.Changed, err error) {
	api, err := l.connect()
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
	if l.output != outputText {
		defer func(out io.Writer) { l.out = out }(l.out)
		l.out = l.errOut
	}
	return l.table(l.changedRows(planned)...)
}
