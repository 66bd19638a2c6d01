package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"oauth-server/internal/ratelimit"
	"oauth-server/lab/process"
	"oauth-server/lab/servers"
)

func measurePolicies(ctx context.Context, w *world) error {
	return w.measureEach(ctx, "policies", w.sizes.policies, w.measurePoliciesOf)
}

const operator = "operator"

func (w *world) measurePoliciesOf(ctx context.Context, s *servers.Store, n int, name string) (err error) {
	others := min(n, 1000) - 1
	if err := fill(ctx, s, others, n); err != nil {
		return err
	}
	polled := servers.ImportedClient(others) // it has a policy, as the others
	if err := errors.Join(s.CreateClient(ctx, operator, "--admin"), s.CreateClient(ctx, polled)); err != nil {
		return err
	}
	all, idle, err := w.measureStart(ctx, s, name)
	if err == nil {
		err = w.measureChanges(ctx, all, polled, others, idle, name)
	}
	return errors.Join(err, endAll(all))
}

// put sets the policy of a client over the admin API: one limit, of its users or of its own.
func (i *instance) put(ctx context.Context, token, id, of string, requests int) error {
	body := fmt.Sprintf(`{%q:[{"requests":%d,"window":"60s"}]}`, of, requests)
	a, err := i.Change(ctx, token, http.MethodPut, "/policies/"+id, body)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("PUT a policy: status %d", a.Status)
	}
	return err
}

// inForce reports whether an instance decides by that limit of a client: a token request is answered with the
// limits that it was counted against. It reads no policies, as requests to the admin API do.
func (i *instance) inForce(ctx context.Context, id string, requests int) (bool, error) {
	a, err := i.Token(ctx, id, servers.Own())
	names := ratelimit.Fields()
	return strings.Contains(a.Header.Get(names.Policy), fmt.Sprintf(";%s=%d;", names.Quota, requests)), err
}

// measureChanges changes policies. For the first ones it asks all instances until they apply the change. For the others
// it asks no instance, and measures the processor time and the bytes written.
func (w *world) measureChanges(ctx context.Context, all []*instance, polled string, others int, idle float64, name string) error {
	t, err := all[0].Token(ctx, operator, servers.Own())
	if err != nil {
		return err
	}
	const base = 1_000_000 // requests, which no poll reaches
	err = w.measureUsable(ctx, all, name,
		func(n int) error { return all[0].put(ctx, t.AccessToken, polled, "client", base+n) },
		func(i *instance, n int) (bool, error) { return i.inForce(ctx, polled, base+n) })
	if err != nil {
		return err
	}
	before, _, err := process.Written(all[0].PID())
	if err != nil {
		return err
	}
	err = w.measureQuiet(ctx, all, idle, name, func(i int) error {
		return all[0].put(ctx, t.AccessToken, servers.ImportedClient(i%others), "user", 1000+i)
	})
	if err != nil {
		return err
	}
	after, _, err := process.Written(all[0].PID())
	w.figures[name+"written"] = (after - before) / float64(w.sizes.quiet)
	w.figures[name+"peakOfChange"] = float64(peakOf(all).Peak)
	return err
}

func policyTables(w *world) string {
	var b strings.Builder
	for _, kind := range kinds() {
		columns := append(costOfStart(), column{"response time of a change", "answered", seconds})
		if kind == mongodb {
			columns = append(columns, column{"in force on all after", "usable", seconds}, column{"at most", "usableWorst", seconds})
		} else {
			columns = append(columns, column{"written per change", "written", kibi})
		}
		columns = append(columns, column{"processor time per change", "change", aboutMilliseconds}, column{"peak after the changes", "peakOfChange", mebi})
		b.WriteString("\n" + titles[kind] + "\n\n" + w.figures.table("policies", columns, rowsOf(w.sizes.policies, "policies/"+kind+"/%d/")))
	}
	return b.String()
}
