package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/ratelimit"
)

func measurePolicies(ctx context.Context, w *world, r *release) error {
	return measureEach(ctx, r, "policies", w.sizes.policies, w.measurePoliciesOf)
}

func (w *world) measurePoliciesOf(ctx context.Context, r *release, kind string, n int, name string) (err error) {
	s, err := w.newStore(ctx, r, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.drop(ctx)) }()
	others := min(n, 1000) - 1
	if _, err := s.fill(ctx, "-clients="+strconv.Itoa(others), "-policies="+strconv.Itoa(n)); err != nil {
		return err
	}
	operator, err := s.register(ctx, "operator", "--admin")
	if err != nil {
		return err
	}
	polled, err := s.register(ctx, clientID(others)) // it has a policy, as the others
	if err != nil {
		return err
	}
	first, err := w.measureStart(ctx, s, name)
	if err != nil {
		return err
	}
	all := []*instance{first}
	defer func() { err = errors.Join(err, endAll(all)) }()
	if kind == mongodb {
		more, err := s.serveAll(ctx, instances-1)
		if err != nil {
			return err
		}
		all = append(all, more...)
	}
	idle, err := w.measureIdle(ctx, r, all, name)
	if err != nil {
		return err
	}
	t, status, err := first.token(ctx, operator, ownToken)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("a token for the operator: status %d: %w", status, err)
	}
	return w.measureChanges(ctx, s, all, &changer{bearer: t.Access, polled: polled, others: others}, idle, name)
}

// changer changes policies over the admin API of the first instance.
type changer struct {
	bearer string
	polled credentials // of the client that instances are asked for
	others int         // clients that are not
	made   int
}

// changePolled gives the polled client another limit, which no poll reaches, and returns it.
func (c *changer) changePolled(ctx context.Context, on *instance) (requests int, err error) {
	c.made++
	requests = 1_000_000 + c.made
	return requests, c.put(ctx, on, c.polled.ID, "client", requests)
}

// change gives the next client another limit.
func (c *changer) change(ctx context.Context, on *instance) error {
	c.made++
	return c.put(ctx, on, clientID(c.made%c.others), "user", 1000+c.made)
}

// clientID is the ID that the filler gives to the client of that number.
func clientID(i int) string { return fmt.Sprintf("client-%07d", i) }

// put sets the policy of a client: one limit, of its users or of its own.
func (c *changer) put(ctx context.Context, on *instance, id, of string, requests int) error {
	body := fmt.Sprintf(`{%q:[{"requests":%d,"window":"60s"}]}`, of, requests)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, on.admin+adminapi.Prefix+"/policies/"+id, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("If-Match", "*")
	status, err := answer(req, nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("PUT a policy: status %d", status)
	}
	return err
}

// inForce reports whether an instance decides by that limit of a client: a token request is answered with the
// limits that it was counted against. It reads no policies, as requests to the admin API do.
func (i *instance) inForce(ctx context.Context, as credentials, requests int) (bool, error) {
	req, err := i.tokenRequest(ctx, as, ownToken)
	if err != nil {
		return false, err
	}
	res, err := client.Do(req)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return false, err
	}
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("a token for %s: status %d", as.ID, res.StatusCode)
	}
	names := ratelimit.Fields()
	return strings.Contains(res.Header.Get(names.Policy), fmt.Sprintf(";%s=%d;", names.Quota, requests)), nil
}

// measureChanges changes policies one after another. For the first ones it polls all instances until
// they apply the change. For the others it polls no instance, and measures the processor time and the
// bytes written.
func (w *world) measureChanges(ctx context.Context, s *store, all []*instance, c *changer, idle float64, name string) error {
	var answered, took []float64
	for range w.sizes.registrations {
		began := time.Now()
		requests, err := c.changePolled(ctx, all[0])
		if err != nil {
			return err
		}
		changed := time.Now()
		answered = append(answered, changed.Sub(began).Seconds())
		if err := onAll(all, func(i *instance) error {
			return until(ctx, func() (bool, error) { return i.inForce(ctx, c.polled, requests) })
		}); err != nil {
			return err
		}
		took = append(took, time.Since(changed).Seconds())
	}
	slices.Sort(answered)
	s.figures.set(name+"answered", answered[len(answered)/2])
	s.figures.set(name+"usable", mean(took))
	s.figures.set(name+"usableWorst", slices.Max(took))
	before, err := written(all[0].PID(), handedOver)
	if err != nil {
		return err
	}
	err = s.measureQuiet(ctx, all, w.sizes.quiet, idle, name, func(int) error { return c.change(ctx, all[0]) })
	if err != nil {
		return err
	}
	after, err := written(all[0].PID(), handedOver)
	s.figures.set(name+"written", (after-before)/1024/float64(w.sizes.quiet))
	s.figures.set(name+"peakOfChange", mebi(peakOf(all).peak))
	return err
}

func policyTables(w *world, old, now *figures) string {
	var b strings.Builder
	for _, kind := range kinds() {
		var rows []row
		for _, n := range w.sizes.policies {
			rows = append(rows, both(commas(int64(n)), fmt.Sprintf("policies/%s/%d/", kind, n), old, now)...)
		}
		columns := append(costOfStart(), column{"a change is answered after", "answered", seconds})
		if kind == mongodb {
			columns = append(columns, column{"in force on all after", "usable", seconds}, column{"at most", "usableWorst", seconds})
		} else {
			columns = append(columns, column{"it writes", "written", unit("KiB")})
		}
		columns = append(columns, column{"processor, for each", "change", aboutMilliseconds}, column{"peak after the changes", "peakOfChange", unit("MiB")})
		b.WriteString("\n" + titles[kind] + "\n\n" + table([]string{"policies", "release"}, columns, rows))
	}
	return b.String()
}
