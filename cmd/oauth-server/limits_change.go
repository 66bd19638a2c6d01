package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/adminclient"
)

// change is one change to be made.
type change struct {
	read   string // path of the resource that it is conditioned on
	method string
	path   string // what to call; empty: the same
	body   any
	done   string // what to tell a person afterwards
}

// errNotAgreed ends a change that nobody agreed to.
var errNotAgreed = errors.New("nothing was changed")

// perform reads, says what would come of the change, asks if need be, and
// makes it, unless somebody else has changed it since it was read.
func (l *limits) perform(ctx context.Context, ch change) error {
	api, err := l.connect()
	if err != nil {
		return err
	}
	etag, err := l.current(ctx, api, ch.read)
	if err != nil {
		return err
	}
	req := adminclient.Change{
		Method: ch.method, Path: ch.path, ETag: etag, Reason: l.reason, Validate: true, Body: ch.body,
	}
	if req.Path == "" {
		req.Path = ch.read
	}
	var rehearsal json.RawMessage
	if err := l.send(ctx, api, req, &rehearsal); err != nil {
		return err
	}
	if l.check {
		return present(l, rehearsal, func(r adminapi.Rehearsal) error {
			_, err := fmt.Fprintln(l.out, r.Effect.Summary)
			return err
		})
	}
	if err := l.agree(rehearsal); err != nil {
		return err
	}
	req.Validate = false
	var changed json.RawMessage
	if err := l.send(ctx, api, req, &changed); err != nil {
		return err
	}
	return l.tell(ch, changed)
}

// current returns the ETag of what there is; empty if there is nothing.
func (l *limits) current(ctx context.Context, api *adminclient.Client, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	etag, err := api.Get(ctx, path, nil, nil)
	var p *adminclient.ProblemError
	if errors.As(err, &p) && p.NotFound() && p.ETag != "" {
		return "", nil
	}
	return etag, err
}

func (l *limits) send(ctx context.Context, api *adminclient.Client, req adminclient.Change, into *json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	_, err := api.Change(ctx, req, into)
	var p *adminclient.ProblemError
	if errors.As(err, &p) && p.Stale() {
		return fmt.Errorf("somebody else changed it in the meantime, so nothing was changed: look again (%w)", err)
	}
	return err
}

// agree says whom a change would have hit, and asks before enforcement is
// widened.
func (l *limits) agree(rehearsal json.RawMessage) error {
	var r adminapi.Rehearsal
	if err := json.Unmarshal(rehearsal, &r); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if !r.Effect.Widens {
		return nil
	}
	l.note("%s", r.Effect.Summary)
	if l.yes {
		return nil
	}
	_, _ = fmt.Fprint(l.errOut, "Go on? [y/N] ")
	line, err := bufio.NewReader(io.LimitReader(l.in, maxAnswerLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read your answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return nil
	case "":
		if errors.Is(err, io.EOF) {
			l.note("")
			return fmt.Errorf("%w: nobody is there to agree; give --yes", errNotAgreed)
		}
	}
	return errNotAgreed
}

const maxAnswerLine = 100

// tell shows what a change has made of the resource.
func (l *limits) tell(ch change, changed json.RawMessage) error {
	if l.output == outputJSON {
		if len(changed) == 0 {
			changed = json.RawMessage("{}")
		}
		return l.json(changed)
	}
	_, err := fmt.Fprintln(l.out, ch.done)
	return err
}

// patchPolicy changes parts of a client's policy.
func (l *limits) patchPolicy(ctx context.Context, clientID string, patch map[string]any, done string) error {
	return l.perform(ctx, change{read: policyPath(clientID), method: http.MethodPatch, body: patch, done: done})
}

// patchSettings changes parts of what holds for all clients.
func (l *limits) patchSettings(ctx context.Context, patch map[string]any, done string) error {
	return l.perform(ctx, change{read: "/settings", method: http.MethodPatch, body: patch, done: done})
}
