package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"oauth-server/lab/load"
	"oauth-server/lab/servers"
)

const (
	many    = 64 // connections
	signIns = 300
	longest = time.Minute
)

func prepareFile(ctx context.Context, s *side) error {
	st := s.newFile("file")
	if err := register(ctx, st); err != nil {
		return err
	}
	if err := s.signIn(ctx, "file", many); err != nil {
		return err
	}
	before, _, err := st.InUse()
	if err != nil {
		return err
	}
	err = s.serving(ctx, "file", func(i *instance) error {
		others := &servers.Refreshes{Client: legacy} // which are not refreshed
		return others.SignIn(ctx, i.Server, user, password, signIns)
	})
	after, _, failed := st.InUse()
	s.note("bytes per sign-in with a password", float64(after-before)/signIns)
	return errors.Join(err, failed)
}

// signIn gets the tokens that are refreshed in the store.
func (s *side) signIn(ctx context.Context, use string, n int) error {
	s.refreshes[use] = &servers.Refreshes{Client: legacy}
	return s.serving(ctx, use, func(i *instance) error { return i.refreshes.SignIn(ctx, i.Server, user, password, n) })
}

func measureFile(ctx context.Context, sides []*side) error {
	refreshed, redeemed := make([]int, len(sides)), make([]int, len(sides))
	before, err := bytesOf(sides)
	if err != nil {
		return err
	}
	err = together(ctx, sides, "file", func(all []*instance) error {
		err := tokens(ctx, all, "tokens", make([]int, len(all)))
		return errors.Join(err, refreshAll(ctx, all, "refreshes", refreshed))
	})
	between, failed := bytesOf(sides)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	err = together(ctx, sides, "file", func(all []*instance) error { return redeemAll(ctx, all, redeemed) })
	after, failed := bytesOf(sides)
	for k, s := range sides {
		s.note("bytes per refresh", float64(between[k]-before[k])/float64(refreshed[k]))
		s.note("bytes per redeemed code", float64(after[k]-between[k])/float64(redeemed[k]))
	}
	return errors.Join(err, failed)
}

// bytesOf returns the bytes in use in the file of each side.
func bytesOf(sides []*side) (all []int, err error) {
	for _, s := range sides {
		n, _, failed := s.stores["file"].InUse()
		all, err = append(all, n), errors.Join(err, failed)
	}
	return all, err
}

func tokens(ctx context.Context, all []*instance, what string, calls []int) error {
	return underLoad(all, what, calls, func(i *instance, connections int) (*load.Result, error) {
		return i.send(ctx, connections, i.slice, func() ([]byte, bool) {
			return i.Request(shop, i.Secrets[shop], servers.Own().Encode()), true
		})
	})
}

func prepareDefault(ctx context.Context, s *side) error { return register(ctx, s.newFile("default")) }

func measureDefault(ctx context.Context, sides []*side) error {
	return together(ctx, sides, "default", func(all []*instance) error {
		calls := make([]int, len(all))
		before, err := allocations(ctx, all)
		if err != nil {
			return err
		}
		if err := tokens(ctx, all, "default: tokens", calls); err != nil {
			return err
		}
		after, err := allocations(ctx, all)
		for k, i := range all {
			for _, what := range []string{"mallocs", "alloc_bytes"} {
				name := "go_memstats_" + what + "_total"
				i.note("default: "+what+" per token", (after[k][name]-before[k][name])/float64(calls[k]))
			}
		}
		return err
	})
}

// allocations returns the metrics of each instance, with what it has allocated.
func allocations(ctx context.Context, all []*instance) ([]map[string]float64, error) {
	found := make([]map[string]float64, len(all))
	for k, i := range all {
		var err error
		if found[k], err = i.Metrics(ctx); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func prepareMongoDB(ctx context.Context, s *side) error {
	st, err := s.newDatabase(ctx, "mongodb")
	if err != nil {
		return err
	}
	if err := register(ctx, st); err != nil {
		return err
	}
	return s.signIn(ctx, "mongodb", many)
}

func measureMongoDB(ctx context.Context, sides []*side) error {
	return together(ctx, sides, "mongodb", func(all []*instance) error {
		return refreshAll(ctx, all, "MongoDB: refreshes", make([]int, len(all)))
	})
}

func refreshAll(ctx context.Context, all []*instance, what string, calls []int) error {
	return underLoad(all, what, calls, func(i *instance, connections int) (*load.Result, error) {
		return i.refreshes.Run(ctx, i.Server, connections, -1, i.slice)
	})
}

// underLoad runs slices of a load on each of the instances by turns, over one connection and over many. It adds how
// often each instance was called.
func underLoad(all []*instance, what string, calls []int, send func(i *instance, connections int) (*load.Result, error)) error {
	for _, connections := range []int{1, many} {
		for slice := range all[0].slices {
			for k := range all {
				k = (k + slice) % len(all)
				var r *load.Result
				used, _, err := servers.Spent(func() (err error) {
					r, err = send(all[k], connections)
					return err
				}, all[k].Server)
				if err != nil {
					return err
				}
				all[k].note(fmt.Sprintf("%s per second, %d connections", what, connections), r.PerSecond())
				all[k].note(fmt.Sprintf("%s, %d connections: processor µs for each", what, connections), 1e6*used/float64(len(r.Records)))
				calls[k] += len(r.Records)
			}
		}
	}
	return nil
}

// requests is a source of requests that must succeed.
type requests struct {
	next func() ([]byte, bool)
	err  error
}

// Next implements [load.Source].
func (r *requests) Next() (c load.Call, ok bool) {
	if r.err != nil {
		return c, false
	}
	c.Request, ok = r.next()
	return c, ok
}

// Done implements [load.Source].
func (r *requests) Done(_ load.Call, status int, body []byte) {
	if status != 200 {
		r.err = fmt.Errorf("a request is answered by %d: %s", status, body)
	}
}

// send sends requests without a pause until d is over or next returns false.
func (i *instance) send(ctx context.Context, connections int, d time.Duration, next func() ([]byte, bool)) (*load.Result, error) {
	r := &requests{next: next}
	return i.Saturate(ctx, connections, d, r, &r.err)
}

func redeemAll(ctx context.Context, all []*instance, calls []int) error {
	each := map[int]int{1: all[0].codes / 10, many: all[0].codes}
	codes := map[*instance][]code{}
	for _, i := range all {
		var err error
		if codes[i], err = i.getCodes(ctx, (each[1]+each[many])*i.slices); err != nil {
			return err
		}
	}
	return underLoad(all, "codes", calls, func(i *instance, connections int) (*load.Result, error) {
		left := each[connections]
		return i.send(ctx, connections, longest, func() ([]byte, bool) {
			if left == 0 {
				return nil, false
			}
			left--
			c := codes[i][0]
			codes[i] = codes[i][1:]
			form := url.Values{"grant_type": {"authorization_code"}, "code": {c.code}, "redirect_uri": {callback}, "code_verifier": {c.verifier}}
			return i.Request(web, i.Secrets[web], form.Encode()), true
		})
	})
}
