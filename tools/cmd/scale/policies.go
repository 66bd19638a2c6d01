package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"oauth-server/internal/adminapi"
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
	if _, err := s.fill(ctx, "-clients=1000", "-policies="+strconv.Itoa(n)); err != nil {
		return err
	}
	operator, err := s.register(ctx, "operator", "--admin")
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
	t, status, err := first.token(ctx, operator, url.Values{"grant_type": {"client_credentials"}})
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("a token for the operator: status %d: %w", status, err)
	}
	return w.measureChanges(ctx, s, all, &changer{bearer: t.Access, policies: min(n, 1000)}, idle, name)
}

// changer changes policies over the admin API of the first instance.
type changer struct {
	bearer   string
	policies int
	made     int
}

// change gives the next client another limit, and returns its ID and the limit.
func (c *changer) change(ctx context.Context, on *instance) (id string, requests int64, err error) {
	c.made++
	id, requests = fmt.Sprintf("client-%07d", c.made%c.policies), int64(1000+c.made)
	body := fmt.Sprintf(`{"user":[{"requests":%d,"window":"60s"}]}`, requests)
	status, err := c.call(ctx, on, http.MethodPut, id, body, nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("PUT a policy: status %d", status)
	}
	return id, requests, err
}

// has reports whether an instance goes by that limit.
func (c *changer) has(ctx context.Context, on *instance, id string, requests int64) (bool, error) {
	var p struct {
		User []adminapi.Limit `json:"user"`
	}
	status, err := c.call(ctx, on, http.MethodGet, id, "", &p)
	return status == http.StatusOK && len(p.User) == 1 && p.User[0].Requests == requests, err
}

func (c *changer) call(ctx context.Context, on *instance, method, id, body string, v any) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, on.admin+adminapi.Prefix+"/policies/"+id, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	if method == http.MethodPut {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("If-Match", "*")
	}
	return answer(req, v)
}

// measureChanges changes policies, one after the other: first some that all instances are asked for until they
// go by them, then some that none is asked for, for the processor time and what is written.
func (w *world) measureChanges(ctx context.Context, s *store, all []*instance, c *changer, idle float64, name string) error {
	var answered, took []float64
	for range w.sizes.registrations {
		began := time.Now()
		id, requests, err := c.change(ctx, all[0])
		if err != nil {
			return err
		}
		changed := time.Now()
		answered = append(answered, changed.Sub(began).Seconds())
		if err := onAll(all, func(i *instance) error {
			return until(ctx, func() (bool, error) { return c.has(ctx, i, id, requests) })
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
	err = s.measureQuiet(ctx, all, w.sizes.quiet, idle, name, func(int) error {
		_, _, err := c.change(ctx, all[0])
		return err
	})
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
