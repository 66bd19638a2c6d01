package ratelimit

import "oauth-server/internal/fielderr"

// MaxShared bounds the number of limits in Total, and in Source.
const MaxShared = 4

// sharedLists returns the lists that count requests of different keys together, with their field
// names.
func (p *Policy) sharedLists() []namedList {
	return []namedList{{"source", p.Source}, {"total", p.Total}}
}

// namedList is a list of limits and the name of its field in the policy.
type namedList struct {
	field  string
	limits []Limit
}

// validateShared returns every problem of Source and Total, alone and in combination with the other
// lists.
func (p *Policy) validateShared() (es fielderr.Errors) {
	before := []namedList{{"user", judged(p.User)}, {"client", judged(p.Client)}}
	for _, l := range p.sharedLists() {
		if len(l.limits) > MaxShared {
			es.Add(l.field, "%d limits are more than %d", len(l.limits), MaxShared)
		}
		l.limits = judged(l.limits)
		es = append(es, l.validate()...)
		for _, other := range before {
			es = append(es, l.compare(other)...)
		}
		before = append(before, l)
	}
	return es
}

// validate returns the problems of a shared list by itself.
func (l *namedList) validate() (es fielderr.Errors) {
	es = append(validateLimits(l.field, l.limits), refuseGrants(l.field, l.limits)...)
	for i := range l.limits {
		if usual := DefaultLimit().Name; l.limits[i].Name == usual {
			es.Add(fielderr.Item(l.field, i)+".name", "%q is what limits of the other lists are usually named, and clients see both: give it another one, such as %s", usual, l.exampleName())
		}
		if l.limits[i].Strict {
			es.Add(fielderr.Item(l.field, i)+".strict", "strict is not available in %s yet", l.field)
		}
	}
	return es
}

func (l *namedList) exampleName() string {
	if l.field == "source" {
		return "per-address"
	}
	return "all-users"
}

// compare returns the conflicts of another list with this one. One is a limit that can never be
// reached because this list admits less in an equal or longer window. Another is a name that both
// lists use.
func (l *namedList) compare(other namedList) (es fielderr.Errors) {
	for i := range other.limits {
		for j := range l.limits {
			o, mine, path := &other.limits[i], &l.limits[j], fielderr.Item(l.field, j)
			if l.field == "total" && o.Requests > mine.Requests && o.Window <= mine.Window {
				es.Add(path+".requests", "%d in %s is less than %s alone, which is %d in %s: a total is of all together",
					mine.Requests, FormatWindow(mine.Window), fielderr.Item(other.field, i), o.Requests, FormatWindow(o.Window))
			}
			if o.Name == mine.Name {
				es.Add(path+".name", "%q is the name of %s already", mine.Name, fielderr.Item(other.field, i))
			}
		}
	}
	return es
}
