package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"oauth-server/internal/ratelimit"
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
	all, err := w.measureStart(ctx, s, name)
	if err == nil {
		err = w.measureChanges(ctx, all, polled, name)
	}
	return errors.Join(err, stopAll(all))
}

// measureChanges sets the policy of a client over the admin API, and asks all instances for tokens of it until they return
// the new limit: a token request returns the limits that it was counted against, and reads no policy.
func (w *world) measureChanges(ctx context.Context, all []*servers.Server, polled, name string) error {
	t, err := all[0].Token(ctx, operator, servers.Own())
	if err != nil {
		return err
	}
	const base = 1_000_000 // requests, which no poll reaches
	names := ratelimit.Fields()
	return w.measureUsable(ctx, all, name,
		func(n int) error {
			body := fmt.Sprintf(`{"client":[{"requests":%d,"window":"60s"}]}`, base+n)
			a, err := all[0].Change(ctx, t.AccessToken, http.MethodPut, "/policies/"+polled, body)
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("PUT a policy: status %d", a.Status)
			}
			return err
		},
		func(i *servers.Server, n int) (bool, error) {
			a, err := i.Token(ctx, polled, servers.Own())
			return strings.Contains(a.Header.Get(names.Policy), fmt.Sprintf(";%s=%d;", names.Quota, base+n)), err
		})
}

func policyTables(w *world) string {
	return w.tables("policies", w.sizes.policies, func(kind string) []column {
		columns := append(costOfStart(), column{"response time of a change", "answered", seconds})
		if kind == mongodb {
			columns = append(columns, column{"in force on all after", "usable", seconds}, column{"at most", "usableWorst", seconds})
		}
		return columns
	})
}
