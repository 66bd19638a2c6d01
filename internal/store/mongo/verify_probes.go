package mongo

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ending is the outcome of a probe.
type ending int

const (
	applied  ending = iota // to the document that was there
	inserted               // as a new document
	conflict               // E11000, and the document stays as it was
	rejected               // any other error, and the document stays as it was
)

// probe is an upsert of a document of its own, in one of the forms in which counters are written,
// and its outcome on MongoDB.
type probe struct {
	check          int
	name           string
	before         bson.D // nil: there is no document
	filter, update bson.D
	swapped        bool // the write names the _id with its fields swapped
	alone          bool // validators would refuse the document
	end            ending
	after          map[string]any // values by path; nil: nothing is at the path
}

// The values of the probes.
const (
	probeMe, probeOther                 = "w0", "w1"
	probeSeq                      int64 = 1_622_211_780_000<<20 + 77 // as of a real instance: not exact as a double
	probeOtherSeq                       = probeSeq - 9
	probeFrame                    int64 = 60_000
	frameOld, frameNow, frameNext       = "1622211600", "1622211780", "1622211840"
	etagSeen, etagNext            int64 = 1<<62 + 1, 1<<62 + 3
	versionSeen                   int64 = 3
	versionNext                         = versionSeen + 1
)

// seen returns the document as the instance has read it.
func (v *verifier) seen() bson.D {
	return fields(
		field("version", versionSeen), field("etag", etagSeen), field("frame", probeFrame), field("expire", v.expire),
		field("writers", fields(field(probeMe, probeSeq-1), field(probeOther, probeOtherSeq))),
		field("requestCounters", fields(field(frameOld, int64(5)), field(frameNow, int64(2)))),
	)
}

// changed returns a copy of the document with another value in a field at the top level.
func changed(doc bson.D, name string, value any) bson.D {
	doc = append(bson.D{}, doc...)
	for i := range doc {
		if doc[i].Key == name {
			doc[i].Value = value
			return doc
		}
	}
	return append(doc, bson.E{Key: name, Value: value})
}

// write returns the update with which every counter is written.
func (v *verifier) write(more ...bson.D) bson.D {
	update := bson.D{
		{Key: "$inc", Value: fields(field("version", int64(1)), field("requestCounters."+frameNow, int64(4)))},
		{Key: "$set", Value: fields(field("etag", etagNext), field("frame", probeFrame))},
		{Key: "$max", Value: highest(v.expire)},
	}
	for _, m := range more {
		update = changed(update, m[0].Key, m[0].Value)
	}
	return update
}

// highest returns the fields that a write only raises.
func highest(expire time.Time) bson.D {
	return fields(field("expire", expire), field("writers."+probeMe, probeSeq))
}

func versioned(version, etag int64) bson.D {
	return fields(field("version", version), field("etag", etag))
}

// fallback returns the filter of a write that depends on the writer's own sequence.
func fallback(removals ...bson.D) bson.D {
	unless := field("$not", field("$gte", probeSeq))
	return fields(field("frame", probeFrame), field("writers."+probeMe, unless), field("pruned", unless), fields(removals...))
}

func (v *verifier) probes() []probe {
	all := v.versionedProbes()
	all = append(all, v.fallbackProbes()...)
	all = append(all, v.removalProbes()...)
	return append(all, v.updateProbes()...)
}

func (v *verifier) versionedProbes() []probe {
	seen, asSeen := v.seen(), versioned(versionSeen, etagSeen)
	below := func(version int64) bson.D { return field("version", field("$lt", version)) } // as policies are folded
	first := map[string]any{
		"version": int64(1), "etag": etagNext, "frame": probeFrame, "writers." + probeMe: probeSeq,
		"requestCounters." + frameNow: int64(4), "writers." + probeOther: nil,
	}
	return []probe{
		{
			check: checkVersioned, name: "as seen", before: seen, filter: asSeen, update: v.write(), end: applied,
			after: map[string]any{"version": versionNext, "etag": etagNext, "requestCounters." + frameNow: int64(6), "requestCounters." + frameOld: int64(5)},
		},
		{check: checkVersioned, name: "another version", before: changed(seen, "version", versionSeen+1), filter: asSeen, update: v.write(), end: conflict},
		{check: checkVersioned, name: "another etag", before: changed(seen, "etag", etagSeen+1), filter: asSeen, update: v.write(), end: conflict},
		{check: checkVersioned, name: "a first write", filter: versioned(0, 0), update: v.write(), end: inserted, after: first},
		{
			check: checkVersioned, name: "expired since", filter: asSeen, update: v.write(), end: inserted,
			after: map[string]any{"version": versionNext, "requestCounters." + frameNow: int64(4), "requestCounters." + frameOld: nil},
		},
		{
			check: checkVersioned, name: "a lower version", before: seen, filter: below(versionSeen + 1), update: v.write(), end: applied,
			after: map[string]any{"version": versionNext, "requestCounters." + frameNow: int64(6)},
		},
		{check: checkVersioned, name: "a version as high", before: seen, filter: below(versionSeen), update: v.write(), end: conflict},
		{check: checkVersioned, name: "a first version", filter: below(versionSeen), update: v.write(), end: inserted, after: first},
		{check: checkIDOrder, name: "fields in order", before: seen, filter: versioned(0, 0), update: v.write(), swapped: true, end: inserted, after: first},
	}
}

func (v *verifier) fallbackProbes() []probe {
	seen := v.seen()
	writers := func(seq int64) bson.D { return changed(seen, "writers", field(probeMe, seq)) }
	after := map[string]any{"version": versionNext, "writers." + probeMe: probeSeq, "requestCounters." + frameNow: int64(6)}
	probes := []probe{
		{name: "a writer unknown", before: changed(seen, "writers", field(probeOther, probeSeq+1)), end: applied, after: after},
		{name: "a lower sequence", before: seen, end: applied, after: after},
		{name: "the same sequence", before: writers(probeSeq), end: conflict},
		{name: "a higher sequence", before: writers(probeSeq + 1), end: conflict},
		{name: "another frame length", before: changed(seen, "frame", probeFrame*60), end: conflict},
		{name: "pruned before", before: changed(seen, "pruned", probeSeq-1), end: applied, after: after},
		{name: "pruned since", before: changed(seen, "pruned", probeSeq), end: conflict},
		{
			name: "a first write by fallback", end: inserted,
			after: map[string]any{"version": int64(1), "frame": probeFrame, "requestCounters." + frameNow: int64(4), "pruned": nil},
		},
	}
	for i := range probes {
		probes[i].check, probes[i].filter, probes[i].update = checkFallback, fallback(), v.write()
	}
	return probes
}

func (v *verifier) removalProbes() []probe {
	seen := v.seen()
	oldCount := func(n int64) bson.D {
		return changed(seen, "requestCounters", fields(field(frameOld, n), field(frameNow, int64(2))))
	}
	after := map[string]any{
		"requestCounters." + frameOld: nil, "writers." + probeOther: nil, "writers." + probeMe: probeSeq,
		"requestCounters." + frameNow: int64(6), "pruned": probeSeq,
	}
	onNothing := map[string]any{
		"requestCounters." + frameOld: nil, "writers." + probeOther: nil, "requestCounters." + frameNow: int64(4), "frame": probeFrame,
	}
	probes := []probe{
		{name: "removed as seen", before: seen, end: applied, after: after},
		{name: "a count that has grown", before: oldCount(6), end: conflict},
		{name: "a count that is gone", before: changed(seen, "requestCounters", field(frameNow, int64(2))), end: conflict},
		{
			name: "a writer that has written", end: conflict,
			before: changed(seen, "writers", fields(field(probeMe, probeSeq-1), field(probeOther, probeOtherSeq+1))),
		},
		{name: "removed from nothing", end: inserted, after: onNothing},
	}
	for i := range probes {
		probes[i].check = checkRemoval
		probes[i].filter = fallback(field("requestCounters."+frameOld, int64(5)), field("writers."+probeOther, probeOtherSeq))
		probes[i].update = v.write(
			field("$unset", fields(field("requestCounters."+frameOld, ""), field("writers."+probeOther, ""))),
			field("$max", fields(highest(v.expire), field("pruned", probeSeq))),
		)
	}
	return probes
}

func (v *verifier) updateProbes() []probe {
	seen, asSeen := v.seen(), versioned(versionSeen, etagSeen)
	expiring := func(at time.Time) bson.D { return v.write(field("$max", highest(at))) }
	counting := func(n any) bson.D { return changed(seen, "requestCounters", field(frameNow, n)) }
	rewrite := v.write(
		field("$inc", field("version", int64(1))),
		field("$set", fields(field("etag", etagNext), field("requestCounters", field(frameNext, int64(1))))),
	)
	probes := []probe{
		{check: checkMax, name: "an earlier date", before: seen, update: expiring(v.expire.Add(-time.Hour)), end: applied, after: map[string]any{"expire": v.expire}},
		{check: checkMax, name: "a later date", before: seen, update: expiring(v.expire.Add(time.Hour)), end: applied, after: map[string]any{"expire": v.expire.Add(time.Hour)}},
		{check: checkMax, name: "a first date", update: v.write(), end: inserted, after: map[string]any{"expire": v.expire}},
		{
			check: checkOneUpdate, name: "$unset beside $inc", before: seen, end: applied,
			update: v.write(field("$unset", fields(field("requestCounters."+frameOld, ""), field("writers."+probeOther, "")))),
			after: map[string]any{
				"version": versionNext, "requestCounters." + frameNow: int64(6), "requestCounters." + frameOld: nil,
				"writers." + probeOther: nil, "writers." + probeMe: probeSeq,
			},
		},
		{
			check: checkOneUpdate, name: "a rewrite", before: seen, update: rewrite, end: applied,
			after: map[string]any{"version": versionNext, "requestCounters." + frameNext: int64(1), "requestCounters." + frameNow: nil, "requestCounters." + frameOld: nil},
		},
		{
			check: checkOneUpdate, name: "one path twice", before: seen, end: rejected,
			update: v.write(field("$unset", field("requestCounters."+frameNow, ""))),
		},
		{check: checkInc, name: "beyond 53 bits", before: counting(int64(1<<53 - 3)), update: v.write(), end: applied, after: map[string]any{"requestCounters." + frameNow: int64(1<<53 + 1)}},
		{check: checkInc, name: "beyond 64 bits", before: counting(int64(math.MaxInt64)), update: v.write(), end: rejected},
		{check: checkInc, name: "a count in words", before: counting("2"), update: v.write(), end: rejected, alone: true},
		{check: checkInc, name: "a count of null", before: counting(nil), update: v.write(), end: rejected, alone: true},
	}
	for i := range probes {
		probes[i].filter = asSeen
	}
	return probes
}
