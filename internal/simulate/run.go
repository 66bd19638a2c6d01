package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/ratelimit/counting"
	"oauth-server/internal/simulate/traffic"
	"oauth-server/internal/strict/fielderr"
)

// Options configure how requests are decided. The zero value uses the built-in limits.
type Options struct {
	// Policies are the limits. The zero value means [ratelimit.DefaultSettings].
	Policies Policies
	// TokenLifetime is how long tokens live if a request has no lifetime. 0: an hour, as in the
	// server.
	TokenLifetime time.Duration
	// MaxKeys bounds the keys that are counted at once, as in the server; below 1: [counting.DefaultMaxKeys].
	MaxKeys int
	// Trials are limits to compare.
	Trials []Trial
	// Goal describes limits to find; nil: none.
	Goal *Goal
	// Progress is called from time to time by the goroutine of Run. Nil: not called.
	Progress func(Progress)

	brief bool // no series for single clients
}

// Progress is the progress of a replay.
type Progress struct {
	// What names the current step: a phrase such as "decide the requests".
	What string
	// Requests is how many requests were read in this pass, and Of their total; 0: not known yet.
	Requests, Of uint64
}

const (
	defaultLifetime = time.Hour
	maxClients      = 10_000 // in the result
)

func (o Options) withDefaults() Options {
	if o.Policies.Settings.Default.User == nil && o.Policies.Settings.Default.Client == nil {
		o.Policies.Settings = ratelimit.DefaultSettings()
	}
	if o.TokenLifetime == 0 {
		o.TokenLifetime = defaultLifetime
	}
	if o.MaxKeys < 1 {
		o.MaxKeys = counting.DefaultMaxKeys
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	return o
}

// Run decides the requests of a source. An error in the options is or wraps [fielderr.Errors]. If
// the source fails, Run decides the requests up to then, and returns the error together with the
// result. If the temporary file is full, the result has no trials and no targets, and Run returns
// the error with it. It does the same with [ErrNoTarget].
func Run(ctx context.Context, source traffic.Source, options Options) (*Result, error) {
	r := &run{Options: options.withDefaults(), ctx: ctx}
	policies, err := r.check()
	if err != nil {
		return nil, err
	}
	if len(r.Trials) > 0 || r.Goal != nil {
		if r.spill, err = newSpill(); err != nil {
			return nil, err
		}
	}
	result, err := r.all(policies, source)
	if r.spill != nil {
		err = errors.Join(err, r.spill.close())
	}
	return result, err
}

// ErrNoTarget is returned if even the lowest limit of the requested form would deny no request.
var ErrNoTarget = errors.New("no requests to find a limit for: all failed, have another grant, or belong to clients that are trusted, off, or have their own limits")

// run is a call of Run.
type run struct {
	Options
	ctx    context.Context
	spill  *spill // for further passes; nil: not needed
	failed error  // of the source, or ErrNoTarget
	kept   error  // of the spill: it lacks requests, so nothing can be compared
}

// check compiles the policies, and reports problems of the policies and of all trials.
func (r *run) check() (*ratelimit.Compiled, error) {
	policies, err := r.Policies.Compile()
	if err != nil {
		return nil, err
	}
	var errs fielderr.Errors
	var together Trial
	for i := range r.Trials {
		tried := r.Policies.With(&r.Trials[i])
		_, err := tried.Compile()
		errs = append(errs, fielderr.Of(err).Under(r.Trials[i].Name)...)
	}
	if r.Goal != nil {
		for i := range r.Goal.Limits {
			one := r.Policies.alone(&r.Goal.Limits[i].Limit)
			_, err := one.Compile()
			errs = append(errs, fielderr.Of(err).Under(r.Goal.Limits[i].Spec)...)
			together.add(TrialOf(r.Goal.Limits[i].Spec, r.Goal.Limits[i].Limit))
		}
		if len(errs) == 0 {
			all := r.Policies.alone(&r.Goal.Limits[0].Limit).With(&together)
			_, err := all.Compile()
			errs = append(errs, fielderr.Of(err).Under(together.Name)...)
		}
	}
	return policies, errs.Err()
}

func (r *run) all(policies *ratelimit.Compiled, source traffic.Source) (*Result, error) {
	result, err := r.decide(policies, source)
	if err != nil {
		return nil, err
	}
	if r.kept != nil {
		return result, errors.Join(r.failed, fmt.Errorf("store the requests in a temporary file: %w", r.kept))
	}
	if err := r.findTargets(result); err != nil {
		return nil, err
	}
	if err := r.compare(result); err != nil {
		return nil, err
	}
	return result, r.failed
}

// decide decides the requests under the policies.
func (r *run) decide(policies *ratelimit.Compiled, source traffic.Source) (*Result, error) {
	e, err := newEngine(r.ctx, policies, &r.Options, source.Answer)
	if err != nil {
		return nil, err
	}
	if err := r.pass("decide the requests", source, func(req *traffic.Request) {
		if r.spill != nil && r.kept == nil {
			r.kept = r.spill.add(req)
		}
		e.take(req)
	}); err != nil {
		return nil, err
	}
	if r.spill != nil && r.kept == nil {
		r.kept = r.spill.w.Flush()
	}
	r.failed = source.Err()
	e.finish()
	return e.result(maxClients), nil
}

// pass calls do with each request of a source.
func (r *run) pass(what string, source traffic.Source, do func(*traffic.Request)) error {
	const every = 1 << 13
	p := Progress{What: what}
	if r.spill != nil {
		if _, again := source.(*spilled); again {
			p.Of = r.spill.count
		}
	}
	var req traffic.Request
	for source.Next(&req) {
		do(&req)
		if p.Requests++; p.Requests%every == 0 {
			if err := r.ctx.Err(); err != nil {
				return err
			}
			r.Progress(p)
		}
	}
	return r.ctx.Err()
}

// again calls do with each request in the spill.
func (r *run) again(what string, do func(*traffic.Request)) error {
	source, err := r.spill.requests()
	if err != nil {
		return err
	}
	if err := r.pass(what, source, do); err != nil {
		return err
	}
	return source.Err()
}

// findTargets finds the requested limits and adds them to the comparison.
func (r *run) findTargets(result *Result) error {
	if r.Goal == nil {
		return nil
	}
	for _, form := range r.Goal.Limits {
		t, err := r.find(form)
		if errors.Is(err, ErrNoTarget) {
			r.failed = errors.Join(r.failed, fmt.Errorf("%s: %w", form.Spec, err))
			continue
		}
		if err != nil {
			return err
		}
		result.Targets = append(result.Targets, t)
	}
	return nil
}

func (r *run) find(form Form) (t Target, err error) {
	p, err := newPeaks(&r.Policies, form, r.MaxKeys)
	if err != nil {
		return t, err
	}
	_, per, _ := strings.Cut(form.Spec, "/")
	if err := r.again("look for the lowest limit per "+per, p.add); err != nil {
		return t, err
	}
	if len(p.clients) == 0 {
		return t, ErrNoTarget
	}
	p.counters = nil // no longer needed
	if r.Goal.Of == OfClients {
		return p.target(r.Goal.Share), nil
	}
	s := newSearch(p, &r.Policies, r.Goal.Share, r.MaxKeys)
	limit := cmp.Or(s.next(), p.highest()) // at least one pass, so that the requests are counted
	for ; limit > 0; limit = s.next() {
		what := fmt.Sprintf("try %d/%s", limit, per)
		if err := s.try(limit, func(do func(*traffic.Request)) error { return r.again(what, do) }); err != nil {
			return t, err
		}
	}
	return s.target(), nil
}

// found returns the found limits as trials, one by one and all together.
func found(targets []Target) (trials []Trial) {
	var together Trial
	for i := range targets {
		t := TrialOf(targets[i].Limit, targets[i].Found)
		trials = append(trials, t)
		together.add(t)
	}
	if len(targets) > 1 {
		trials = append(trials, together)
	}
	return trials
}

// compare decides the requests under each of the trials, and under the found limits.
func (r *run) compare(result *Result) error {
	trials := slices.Clone(r.Trials)
	for _, t := range found(result.Targets) {
		tried := r.Policies.With(&t)
		if _, err := tried.Compile(); err != nil { // for example, with a lower total
			result.Notes = append(result.Notes, fmt.Sprintf("%s conflicts with the other limits: %v", t.Name, err))
			continue
		}
		trials = append(trials, t)
	}
	for i := range trials {
		w, err := r.try(&trials[i])
		if err != nil {
			return err
		}
		w.Found = i >= len(r.Trials)
		result.WhatIf = append(result.WhatIf, w)
	}
	return nil
}

// try decides the requests under a trial.
func (r *run) try(t *Trial) (w WhatIf, err error) {
	tried := r.Policies.With(t)
	compiled, err := tried.Compile()
	if err != nil {
		return w, err
	}
	brief := r.Options
	brief.brief = true
	e, err := newEngine(r.ctx, compiled, &brief, (*spilled)(nil).Answer)
	if err != nil {
		return w, err
	}
	if err := r.again("try "+t.Name, e.take); err != nil {
		return w, err
	}
	e.finish()
	w = WhatIf{Limit: t.Name, Reach: e.stats.reach(), Counts: e.stats.total()}
	w.RefusedShare = w.Counts.RefusedShare()
	return w, nil
}
