package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// change gives the next client another limit, and returns the version of all policies after it.
func (c *changer) change(ctx context.Context, on *instance) (version int64, err error) {
	c.made++
	id, body := fmt.Sprintf("client-%07d", c.made%c.policies), fmt.Sprintf(`{"user":[{"requests":%d,"window":"60s"}]}`, 1000+c.made)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, on.admin+adminapi.Prefix+"/policies/"+id, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("If-Match", "*")
	var p adminapi.PolicyView
	status, err := answer(req, &p)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("PUT a policy: status %d", status)
	}
	return p.Meta.Version, err
}

// revision begins the line of the metric for the version of the policies in force. To ask the admin API for
// a policy would have the instance read the newest ones first.
const revision = `oauth_config_revision{config="policies"} `

// inForce reports whether an instance goes by the policies of a version.
func (i *instance) inForce(ctx context.Context, version int64) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.admin+"/metrics", http.NoBody)
	if err != nil {
		return false, err
	}
	res, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return false, err
	}
	_, rest, _ := strings.Cut(string(text), "\n"+revision)
	line, _, _ := strings.Cut(rest, "\n")
	now, err := strconv.ParseFloat(line, 64)
	return now >= float64(version), err
}

// measureChanges changes policies, one after the other: first some that all instances are asked for until they
// go by them, then some that none is asked for, for the processor time and what is written.
func (w *world) measureChanges(ctx context.Context, s *store, all []*instance, c *changer, idle float64, name string) error {
	var answered, took []float64
	for range w.sizes.registrations {
		began := time.Now()
		version, err := c.change(ctx, all[0])
		if err != nil {
			return err
		}
		changed := time.Now()
		answered = append(answered, changed.Sub(began).Seconds())
		if err := onAll(all, func(i *instance) error {
			return until(ctx, func() (bool, error) { return i.inForce(ctx, version) })
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
		_, err := c.change(ctx, all[0])
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
