package clientcfg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store"
	"oauth-server/internal/strict/fielderr"
)

// PoliciesTable holds the values that operators have set, by the target of a [Change].
var PoliciesTable = store.Table{Name: "policies"}

// versionKey is the key of an empty record that each change writes. The version of the policies is
// the number of the entry that wrote it last.
const versionKey = "version"

// ErrUnreadable is returned for a stored value that was edited by hand, is damaged, or comes from a
// newer version.
var ErrUnreadable = errors.New("clientcfg: stored value is unreadable")

// PolicySource holds the newest [PolicySnapshot]. Reads are a pointer load. It is safe for concurrent use.
type PolicySource struct {
	follower *store.Follower
	base     ratelimit.Settings // used only by the follower
	reset    func(Reset)
	clock    func() time.Time
	log      *slog.Logger
	mu       sync.Mutex // held while current is replaced
	current  atomic.Pointer[PolicySnapshot]
}

// PolicyOptions configure a [PolicySource]. A zero value means the default noted beside the field.
type PolicyOptions struct {
	// Base is the settings of the configuration file. The default is ratelimit.DefaultSettings().
	Base ratelimit.Settings
	// Reset is called with each reset of counters in the trail, in order. It may be nil. Resets before
	// the start are not reported, and neither are those of entries that the trail does not have any
	// more.
	Reset func(Reset)
	// Clock decides when temporary values end (package clock). The default is time.Now.
	Clock func() time.Time
	Log   *slog.Logger // discards
}

// PolicyStatus describes the policies in force.
type PolicyStatus struct {
	Version int64
	// LeftOut is how many targets have an older value or the value of the configuration file,
	// because their stored value cannot be used.
	LeftOut   int
	CheckedAt time.Time // when they were last known to be current
	Err       error     // why targets are left out; nil if all can be used
}

// NewPolicySource reads the policies, and follows the trail from then on. An unusable value affects
// only its own target.
func NewPolicySource(ctx context.Context, f *store.Follower, o PolicyOptions) (*PolicySource, error) {
	s := &PolicySource{follower: f, base: o.Base, reset: o.Reset, clock: o.Clock, log: o.Log}
	if s.base.Default.User == nil && s.base.Default.Client == nil {
		s.base = ratelimit.DefaultSettings()
	}
	if s.reset == nil {
		s.reset = func(Reset) {}
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := f.Subscribe(ctx, store.Subscriber{Table: PoliciesTable, Reload: s.reload, Apply: s.apply}); err != nil {
		return nil, err
	}
	return s, nil
}

// Snapshot returns the current snapshot, without I/O.
func (s *PolicySource) Snapshot() *PolicySnapshot { return s.current.Load() }

// Status returns the status of the current snapshot, without I/O.
func (s *PolicySource) Status() PolicyStatus {
	p := s.current.Load()
	return PolicyStatus{Version: p.Version(), LeftOut: p.LeftOut(), CheckedAt: s.follower.CheckedAt(), Err: joined(p.leftOut)}
}

// reload reads all policies.
func (s *PolicySource) reload(ctx context.Context, _ store.Mark) error {
	d, err := newDraft(s.base)
	if err != nil {
		return err
	}
	d.reading = true
	list := func(prefix string) {
		if err != nil {
			return
		}
		err = s.follower.Backend().List(ctx, PoliciesTable, store.Query{Prefix: prefix}, func(r store.Record) error {
			if _, temporary := temporaryOf(r.Key); temporary == (prefix != "") {
				d.read(&r)
			}
			return nil
		})
	}
	list(temporaryTargets) // see put
	list("")
	if err == nil {
		err = s.fillFromTrail(ctx, d)
	}
	if err != nil {
		return fmt.Errorf("clientcfg: read the policies: %w", err)
	}
	next, err := d.finish()
	if err != nil {
		return err
	}
	// Before the start of the syncer, process time is the time of this machine, which may be wrong.
	now, err := s.follower.Backend().Now(ctx)
	if err != nil {
		return fmt.Errorf("clientcfg: read the clock: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.use(ctx, next.At(now))
	return nil
}

// fillFromTrail gives each left-out target the value of its last usable change, or the value before
// that change, if the trail still has one.
func (s *PolicySource) fillFromTrail(ctx context.Context, d *draft) error {
	leftOut, wanted := d.next.leftOut, maps.Clone(d.next.leftOut)
	maps.DeleteFunc(wanted, func(target string, _ error) bool {
		_, temporary := temporaryOf(target) // the permanent value is in force
		return temporary
	})
	if len(wanted) == 0 {
		return nil
	}
	d.next.leftOut = nil
	err := s.follower.Backend().History(ctx, 0, func(entry store.Entry) error {
		e := readEvent(&entry)
		for _, c := range e.Changes {
			if wanted[c.Target] != nil && (d.try(c.Target, c.After, e.Number) == nil || d.try(c.Target, c.Before, e.Number-1) == nil) {
				delete(wanted, c.Target)
			}
		}
		if len(wanted) == 0 {
			return errEnough
		}
		return nil
	})
	d.next.leftOut = leftOut
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// apply takes the changed values from the table, and resets from the entries.
func (s *PolicySource) apply(ctx context.Context, b store.Batch) {
	if len(b.Changed)+len(b.Deleted) == 0 {
		return
	}
	for i := range b.Entries {
		s.carryOut(&b.Entries[i])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.current.Load().edit()
	d.reading = true
	read := func(temporary bool) {
		for i := range b.Changed {
			if _, is := temporaryOf(b.Changed[i].Key); is == temporary {
				d.read(&b.Changed[i])
			}
		}
	}
	read(true) // see put
	for _, target := range b.Deleted {
		_ = d.try(target, jsonNull, 0) // an unknown target has no effect
	}
	read(false)
	next, err := d.finish()
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelError, "stored limits are unusable; keeping the last ones", slog.Any("error", err))
		return
	}
	s.use(ctx, next)
}

// carryOut reports the resets of an entry.
func (s *PolicySource) carryOut(entry *store.Entry) {
	if s.clock().Sub(entry.At) > resetsFor || !slices.ContainsFunc(entry.Refs, func(r store.Ref) bool { return r.Table == PoliciesTable.Name }) {
		return
	}
	e := readEvent(entry)
	for i := range e.Changes {
		if id, is := countersOf(e.Changes[i].Target); is {
			if r, err := decodeValue[resetValue](e.Changes[i].Target, e.Changes[i].After); err == nil {
				s.reset(Reset{Version: e.Number, ClientID: id, Username: r.Username, At: e.At})
			}
		}
	}
}

// resetsFor is how late a reset is still carried out. After that, its counts are gone, or belong to
// a window that ends soon.
const resetsFor = time.Hour

// End ends the temporary values that are due. It does not use the store, so each instance does it
// by itself. Call it periodically.
func (s *PolicySource) End(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.current.Load()
	next := old.At(s.clock())
	if next != old {
		s.use(ctx, next)
		s.log.LogAttrs(ctx, slog.LevelInfo, "temporary changes ended", slog.Int("targets", old.set.Temporary.Len()-next.set.Temporary.Len()))
	}
	return nil
}

// use installs the next snapshot. s.mu must be held.
func (s *PolicySource) use(ctx context.Context, next *PolicySnapshot) {
	old := s.current.Load()
	var before map[string]error
	if old != nil {
		before = old.leftOut
	}
	s.current.Store(next)
	switch {
	case len(next.leftOut) > 0 && !slices.Equal(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(next.leftOut))):
		s.log.LogAttrs(ctx, slog.LevelError, "stored limits cannot be used; the last good ones stay in force",
			slog.Int64("version", next.Version()), slog.Int("left_out", next.LeftOut()), slog.Any("error", joined(next.leftOut)))
	case len(next.leftOut) == 0 && len(before) > 0:
		s.log.LogAttrs(ctx, slog.LevelInfo, "all stored limits are usable again", slog.Int64("version", next.Version()))
	}
}

// joined combines the errors of targets: the first few, and the number of the others. It returns
// nil if there are no errors.
func joined(leftOut map[string]error) error {
	const most = 5
	var shown []error
	for _, target := range slices.Sorted(maps.Keys(leftOut)) {
		if len(shown) == most {
			shown = append(shown, fmt.Errorf("and %d more targets", len(leftOut)-most))
			break
		}
		shown = append(shown, leftOut[target])
	}
	return errors.Join(shown...)
}

// Edit derives an event from the newest policies: its Changes, and its fields for the audit trail.
// It is called again if another instance was faster, so it must have no side effects. An error
// cancels the change.
type Edit func(current *PolicySnapshot) (Event, error)

// Change appends the event that an edit returns for the newest policies. When Change returns, the
// result is validated, durable and in force at this instance. Errors: errors of the edit;
// [fielderr.Errors], possibly wrapped, for an invalid result.
func (s *PolicySource) Change(ctx context.Context, edit Edit) (next *PolicySnapshot, err error) {
	_, err = s.follower.Append(ctx, func(number int64) (entry store.Entry, writes []store.Write, err error) {
		var changes []Change
		if next, entry, changes, err = s.prepare(number, edit); err != nil {
			return entry, nil, err
		}
		return entry, writesOf(changes), nil
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// Try returns the snapshot that [PolicySource.Change] would produce, and changes nothing.
func (s *PolicySource) Try(ctx context.Context, edit Edit) (next *PolicySnapshot, err error) {
	err = s.follower.View(ctx, func(number int64) (err error) {
		next, _, _, err = s.prepare(number, edit)
		return err
	})
	return next, err
}

// prepare runs the edit, and fills in the Before values of its event.
func (s *PolicySource) prepare(number int64, edit Edit) (next *PolicySnapshot, entry store.Entry, changes []Change, err error) {
	current := *s.current.Load()
	current.upcoming = number
	e, err := edit(&current)
	current.Complete(&e)
	for i := 0; i < len(e.Changes) && err == nil; i++ {
		e.Changes[i].Before, _, err = current.value(e.Changes[i].Target)
	}
	if err == nil {
		next, err = current.Apply(&e)
	}
	if err == nil {
		entry, err = e.entry()
	}
	if err != nil {
		return nil, entry, nil, err
	}
	if len(entry.Value) > MaxEntrySize {
		var es fielderr.Errors
		es.Add("", "the change takes %d bytes in the audit trail, more than the maximum of %d; split it", len(entry.Value), MaxEntrySize)
		return nil, entry, nil, es.Err()
	}
	return next, entry, e.Changes, nil
}

// nothingSet is the empty snapshot that [CheckPolicy] adds a record to. It is compiled once.
var nothingSet = sync.OnceValues(func() (*PolicySnapshot, error) { return FixedPolicies(ratelimit.DefaultSettings()) })

// CheckPolicy returns why a record of [PoliciesTable] cannot be used, or nil.
func CheckPolicy(r *store.Record) error {
	p, err := nothingSet()
	if err != nil {
		return err
	}
	d := p.edit()
	d.read(r)
	return joined(d.next.leftOut)
}

// DropPolicy removes a record of [PoliciesTable] without reading it.
func DropPolicy(ctx context.Context, f *store.Follower, target string) error {
	_, err := f.Append(ctx, func(int64) (store.Entry, []store.Write, error) {
		e := Event{At: time.Now(), Changes: []Change{{Target: target, Before: jsonNull, After: jsonNull}}}
		entry, err := e.entry()
		return entry, writesOf(e.Changes), err
	})
	return err
}

// TargetsOf returns, sorted, the targets for a client's policy, candidate and overrides that have a
// stored value, permanent or temporary, including unreadable ones.
func TargetsOf(ctx context.Context, b store.Backend, clientID string) ([]string, error) {
	targets := map[string]bool{}
	add := func(r store.Record) error {
		targets[strings.TrimPrefix(r.Key, temporaryTargets)] = true
		return nil
	}
	for _, prefix := range []string{"", temporaryTargets} {
		err := b.Get(ctx, PoliciesTable, add, prefix+PolicyTarget(clientID), prefix+CandidateTarget(clientID))
		if err == nil {
			err = b.List(ctx, PoliciesTable, store.Query{Prefix: prefix + overrideTargets + clientID + " "}, add)
		}
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(targets)), nil
}

// writesOf returns the writes for changes. All changes must have different targets.
func writesOf(changes []Change) []store.Write {
	writes := []store.Write{{Table: PoliciesTable, Record: store.Record{Key: versionKey, Value: []byte("{}")}}}
	for i := range changes {
		if c := &changes[i]; c.IsState() {
			r := store.Record{Key: c.Target, Value: c.After}
			if of, is := temporaryOf(c.Target); is && !c.IsNull() {
				if t, err := decodeTemporary(of, c.After); err == nil {
					r.Expires = t.Until.Add(temporaryKept)
				}
			}
			writes = append(writes, store.Write{Table: PoliciesTable, Record: r, Delete: c.IsNull()})
		}
	}
	return writes
}
