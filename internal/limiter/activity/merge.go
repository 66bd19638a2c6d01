package activity

import (
	"maps"
	"slices"
)

// Merge adds up the reports of several processes. If one of them omits clients, the sums may be too
// low, and Incomplete is set.
func Merge(reports ...Report) Report {
	var out Report
	byID := map[string]ClientReport{}
	for i, r := range reports {
		if i == 0 || r.Since.Before(out.Since) {
			out.Since = r.Since
		}
		out.Incomplete = out.Incomplete || r.Incomplete || r.Total > len(r.Clients)
		out.Total = max(out.Total, r.Total)
		for _, c := range r.Clients {
			byID[c.ClientID] = byID[c.ClientID].merged(c)
		}
	}
	out.Clients = slices.Collect(maps.Values(byID))
	out.Total = max(out.Total, len(out.Clients))
	out.order(len(out.Clients))
	out.Denied = mergeDenied(reports, byID)
	return out
}

// merged adds another process's report of the client. The two may have different candidates or
// limits, if one process had no request since a change. The later ones are then used.
func (c ClientReport) merged(o ClientReport) ClientReport {
	m := ClientReport{ClientID: o.ClientID, TriedSince: o.TriedSince, Counts: c.Plus(o.Counts)}
	if !c.TriedSince.Equal(o.TriedSince) {
		later := o
		if c.TriedSince.After(o.TriedSince) {
			later = c
		}
		m.TriedSince, m.CandidateCounts = later.TriedSince, later.CandidateCounts
	}
	for _, kind := range kinds {
		a, inC := c.Kind(kind)
		b, inO := o.Kind(kind)
		switch {
		case inC && inO:
			m.Kinds = append(m.Kinds, a.merged(b))
		case inC:
			m.Kinds = append(m.Kinds, a)
		case inO:
			m.Kinds = append(m.Kinds, b)
		}
	}
	return m
}

// merged adds another process's report of the same kind.
func (k KindReport) merged(o KindReport) KindReport {
	all, same := united(k.Limits, o.Limits, peakLimit)
	if !same {
		if k.Since.After(o.Since) {
			return k
		}
		return o
	}
	m := KindReport{Kind: k.Kind, Since: k.Since, Over: k.Over + o.Over, Reused: k.Reused + o.Reused, Delayed: k.Delayed + o.Delayed, Limits: all}
	if m.Since.IsZero() || !o.Since.IsZero() && o.Since.Before(m.Since) {
		m.Since = o.Since // each process sees the change at its next request
	}
	for i := range m.Limits {
		for _, p := range o.Limits {
			if m.Limits[i].Limit.DeniesAs(p.Limit) {
				m.Limits[i].Count = max(m.Limits[i].Count, p.Count)
			}
		}
	}
	return m
}
