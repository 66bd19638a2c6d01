package mongo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/clientcfg"
)

// The truth is the trail, in the collection "audit": an entry is stored by an insert under its version,
// which of several writers one alone succeeds with. The collection "policies" is the fold of the trail:
// a document for each target, with the version at which it last changed, and a marker of the version up
// to which all entries are in it. Whatever is lost or comes late on the way, folding repeats it: a
// document is only ever replaced by one of a higher version.

// markerDoc is the marker of the fold. The migration makes it, in the place where earlier releases
// had all policies, with a version that none of them can read.
type markerDoc struct {
	Version bson.RawValue `bson:"version"` // policyMarkerVersion
	Folded  bson.RawValue `bson:"folded"`
}

// foldEvery is how many entries are folded together: so many, or a few more, are read at a start.
const foldEvery = 32

// PolicyVersion implements [clientcfg.PolicyStore].
func (s *Store) PolicyVersion(ctx context.Context) (newest clientcfg.PolicyVersion, err error) {
	err = s.do(ctx, "read policy version", func(ctx context.Context) (err error) {
		newest, err = s.policyVersion(ctx)
		return err
	})
	return newest, err
}

// policyVersion reads which entry is the newest or, if all were swept, up to which they are folded.
func (s *Store) policyVersion(ctx context.Context) (newest clientcfg.PolicyVersion, err error) {
	newest, err = s.entryID(ctx, 1, maxNumber)
	if err == nil && newest.Number == 0 {
		newest.Number, err = s.policiesFolded(ctx)
	}
	return newest, err
}

// entryID reads which entry is the newest of those in a range of versions that match; zero if none does. The
// ID of an entry is the nonce beside it, which can be read alone.
func (s *Store) entryID(ctx context.Context, from, to int64, filter ...bson.E) (newest clientcfg.PolicyVersion, err error) {
	for whole := false; !whole; to = newest.Number { // what is between two versions is no entry
		var stored storedEntry
		err = s.audit.FindOne(ctx, append(numbered(from, to), filter...), options.FindOne().SetSort(byID(-1)).
			SetProjection(bson.D{{Key: "nonce", Value: 1}}).SetComment(comment(ctx))).Decode(&stored)
		if errors.Is(err, mongo.ErrNoDocuments) {
			return clientcfg.PolicyVersion{}, nil
		}
		if err != nil {
			return clientcfg.PolicyVersion{}, err
		}
		newest.ID = stored.id()
		newest.Number, whole = stored.version()
	}
	return newest, nil
}

// policiesFolded reads the marker. Without one nothing is folded.
func (s *Store) policiesFolded(ctx context.Context) (int64, error) {
	var marker markerDoc
	err := s.policies.FindOne(ctx, byID(policyMarkerID), options.FindOne().SetComment(comment(ctx))).Decode(&marker)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return 0, nil
	case err != nil:
		return 0, err
	}
	version, isNumber := wholeNumber(marker.Version)
	folded, ok := wholeNumber(marker.Folded)
	if !isNumber || !ok || version != policyMarkerVersion {
		err = fmt.Errorf("%w: version is %s and folded is %s in the document %q of the collection policies, not %d and a whole number",
			clientcfg.ErrUnreadable, typeOf(marker.Version), typeOf(marker.Folded), policyMarkerID, policyMarkerVersion)
	}
	return folded, err
}

// typeOf names what a field holds.
func typeOf(v bson.RawValue) string {
	if v.IsZero() {
		return "missing"
	}
	return "of type " + v.Type.String()
}

// PolicyState implements [clientcfg.PolicyStore]. It takes as many commands as there are thousands of
// targets, each within the store's timeout.
func (s *Store) PolicyState(ctx context.Context) (state clientcfg.PolicyState, err error) {
	if err := s.present(ctx); err != nil {
		return state, err
	}
	var folded int64
	for range 3 { // the entries after the marker may be folded and swept meanwhile
		state, folded, err = s.policyState(ctx)
		if !errors.Is(errors.Join(err, state.Stopped), clientcfg.ErrPolicyGap) {
			break
		}
	}
	if err == nil && state.Version == 0 && errors.Is(state.Stopped, clientcfg.ErrPolicyGap) {
		err = state.Stopped // the fold is lost: it is not the policies of before, but none at all
	}
	if err == nil && state.Version >= folded+foldEvery {
		_ = s.foldPolicies(ctx) // changes have not; the next one will
	}
	return state, err
}

// policyState reads the marker, then the targets, some of which may be newer already, then the entries
// after the marker: they bring every target to one version.
func (s *Store) policyState(ctx context.Context) (state clientcfg.PolicyState, folded int64, err error) {
	err = s.do(ctx, "read policies", func(ctx context.Context) (err error) {
		folded, err = s.policiesFolded(ctx)
		return err
	})
	if err != nil {
		return state, folded, err
	}
	state.Version = folded
	if state.Targets, err = s.foldedTargets(ctx, folded); err != nil {
		return state, folded, err
	}
	if err = s.eachEntry(ctx, folded+1, state.Fold); errors.Is(err, clientcfg.ErrUnreadable) {
		state.Stopped, err = err, nil
	}
	maps.DeleteFunc(state.Targets, func(_ string, v clientcfg.TargetValue) bool {
		return string(v.Value) == "null" && v.Version <= state.Version
	})
	if err != nil {
		return state, folded, err
	}
	err = s.do(ctx, "read policies", func(ctx context.Context) error {
		now, err := s.policiesFolded(ctx)
		if err == nil && now > state.Version { // all entries that were missed here may have been swept since
			err = clientcfg.ErrPolicyGap
		}
		if err != nil || state.Version > folded {
			return err
		}
		last, err := s.entryID(ctx, folded, folded)
		state.ID = last.ID
		return err
	})
	return state, folded, err
}

// targetsAtOnce bounds how many targets one command reads.
const targetsAtOnce = 5000

// storedTarget is a [policyTarget] as it is read: see storedEntry.
type storedTarget struct {
	Target  bson.RawValue `bson:"_id"`
	Version bson.RawValue `bson:"version"`
	Value   bson.RawValue `bson:"value"`
}

// value returns the target and its value, which is no JSON if anything is of another type.
func (t *storedTarget) value() (target string, v clientcfg.TargetValue) {
	target, ok := t.Target.StringValueOK()
	if !ok {
		target = t.Target.String()
	}
	v.Value = textOf(t.Value)
	if v.Version, ok = t.Version.AsInt64OK(); !ok {
		v.Value = fmt.Appendf(nil, "(its version is %s)", t.Version.Type)
	}
	return target, v
}

// foldedTargets reads all targets that have a value, and those that were removed after a version.
func (s *Store) foldedTargets(ctx context.Context, folded int64) (map[string]clientcfg.TargetValue, error) {
	filter := bson.D{
		{Key: "_id", Value: bson.D{{Key: "$ne", Value: policyMarkerID}}},
		{Key: "$or", Value: bson.A{
			bson.D{{Key: "value", Value: bson.D{{Key: "$ne", Value: "null"}}}},
			bson.D{{Key: "version", Value: bson.D{{Key: "$gt", Value: folded}}}},
		}},
	}
	var cursor *mongo.Cursor
	err := s.do(ctx, "read policies", func(ctx context.Context) (err error) {
		cursor, err = s.policies.Find(ctx, filter, options.Find().SetBatchSize(targetsAtOnce).SetComment(comment(ctx)))
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = cursor.Close(context.WithoutCancel(ctx)) }()
	targets := map[string]clientcfg.TargetValue{}
	for more := true; more; {
		err := s.do(ctx, "read policies", func(ctx context.Context) error {
			for more = cursor.Next(ctx); more; more = cursor.Next(ctx) {
				var doc storedTarget
				if err := cursor.Decode(&doc); err != nil {
					return err
				}
				target, v := doc.value()
				targets[target] = v
				if cursor.RemainingBatchLength() == 0 { // the next one takes another command
					return nil
				}
			}
			return cursor.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// eachEntry calls fold for the entries from that version on, the oldest first, until it fails.
func (s *Store) eachEntry(ctx context.Context, from int64, fold func(e *clientcfg.PolicyEntry) error) error {
	for {
		entries, err := s.PolicyEntries(ctx, from)
		for i := range entries {
			if err := fold(&entries[i]); err != nil {
				return err
			}
			from = entries[i].Version + 1
		}
		if err != nil || len(entries) < entriesAtOnce {
			return err
		}
	}
}

// entriesAtOnce bounds what PolicyEntries returns.
const entriesAtOnce = 64

// PolicyEntries implements [clientcfg.PolicyStore].
func (s *Store) PolicyEntries(ctx context.Context, from int64) (entries []clientcfg.PolicyEntry, err error) {
	err = s.do(ctx, "read policy entries", func(ctx context.Context) (err error) {
		entries, err = s.policyEntries(ctx, from)
		return err
	})
	return entries, err
}

func (s *Store) policyEntries(ctx context.Context, from int64) (entries []clientcfg.PolicyEntry, err error) {
	docs, err := findAll[storedEntry](ctx, s.audit, numbered(from, maxNumber), options.Find().SetSort(byID(1)).SetLimit(entriesAtOnce))
	for i := range docs {
		if version, ok := docs[i].version(); ok {
			entries = append(entries, clientcfg.ReadPolicyEntry(docs[i].text(), version, docs[i].id()))
		}
	}
	return entries, err
}

// AppendPolicyEntry implements [clientcfg.PolicyStore].
func (s *Store) AppendPolicyEntry(ctx context.Context, entry clientcfg.PolicyEntry) error {
	doc, err := newAuditDoc(&entry)
	if err != nil {
		return err
	}
	err = s.do(ctx, "change policies", func(ctx context.Context) error {
		newest, err := s.policyVersion(ctx)
		if err != nil {
			return err
		}
		folded, err := s.policiesFolded(ctx) // earlier releases may have swept the newest
		if err != nil {
			return err
		}
		version := max(newest.Number, folded)
		if version != entry.Version-1 { // an insert alone could leave a gap
			return fmt.Errorf("%w: version %d is stored, not %d", clientcfg.ErrPolicyConflict, version, entry.Version-1)
		}
		if _, err = s.audit.InsertOne(ctx, doc, options.InsertOne().SetComment(comment(ctx))); err != nil {
			return s.whyNotAppended(ctx, &entry, err)
		}
		return nil
	})
	if err == nil && entry.Version%foldEvery == 0 {
		_ = s.foldPolicies(ctx) // the entry is stored, whatever becomes of this
	}
	return err
}

// whyNotAppended finds out whether an entry that was not acknowledged is stored; it returns nil if it
// is. The caller's context may have ended, so there is a short timeout instead.
func (s *Store) whyNotAppended(ctx context.Context, ours *clientcfg.PolicyEntry, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), selectionTimeout)
	defer cancel()
	var stored storedEntry
	err := s.audit.FindOne(ctx, byID(ours.Version), options.FindOne().SetComment(comment(ctx))).Decode(&stored)
	switch {
	case errors.Is(err, mongo.ErrNoDocuments):
		return cause
	case err != nil:
		return errors.Join(cause, err)
	case stored.id() != ours.ID:
		return fmt.Errorf("%w: there is another version %d", clientcfg.ErrPolicyConflict, ours.Version)
	}
	return nil
}

// ObserveFolds has begin called before each fold of the trail, and what it returns after it: nothing
// depends on a fold, so one that fails is not seen otherwise. It must be called before the store is used.
func (s *Store) ObserveFolds(begin func(ctx context.Context) (_ context.Context, end func(error))) {
	s.foldBegins = begin
}

// foldPolicies brings the fold up to the newest entry that can be read. Any number of instances may do
// so at once, and be interrupted anywhere.
func (s *Store) foldPolicies(ctx context.Context) (err error) {
	if s.foldBegins != nil {
		observed, end := s.foldBegins(ctx)
		ctx = observed
		defer func() { end(err) }()
	}
	for more := true; more; {
		err := s.do(ctx, "fold policies", func(ctx context.Context) (err error) {
			more, err = s.foldSome(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// foldSome folds the entries after the marker, a bounded part of them, and reports whether there are
// more.
func (s *Store) foldSome(ctx context.Context) (more bool, err error) {
	folded, err := s.policiesFolded(ctx)
	if err != nil {
		return false, err
	}
	entries, err := s.policyEntries(ctx, folded+1)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	next, targets, stop := latest(folded, entries)
	if next == folded {
		return false, stop
	}
	if err := putPolicyTargets(ctx, s.policies, slices.Collect(maps.Values(targets)), comment(ctx)); err != nil {
		return false, err
	}
	err = putPolicyMarker(ctx, s.policies, next, comment(ctx))
	more = next < entries[len(entries)-1].Version || len(entries) == entriesAtOnce
	return more, errors.Join(err, stop)
}

// foldAtOnce is how many targets are folded together, or as many as one entry has.
const foldAtOnce = 2000

// latest returns what entries that follow a version come to, by target: the first few, or all. It stops
// with an error at one that does not follow, or does not say what it changes.
func latest(folded int64, entries []clientcfg.PolicyEntry) (version int64, targets map[string]policyTarget, err error) {
	state := clientcfg.PolicyState{Version: folded}
	targets = map[string]policyTarget{}
	for i := range entries {
		if len(targets) >= foldAtOnce {
			break
		}
		if err := state.Fold(&entries[i]); err != nil {
			return state.Version, targets, err
		}
		for _, c := range entries[i].Changes {
			if c.IsState() {
				targets[c.Target] = policyTarget{Target: c.Target, Version: entries[i].Version, Value: string(c.After)}
			}
		}
	}
	return state.Version, targets, nil
}
