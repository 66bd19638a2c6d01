package ratelimit

import "oauth-server/internal/fielderr"

// MaxShared bounds the limits of a total, and those of a source.
const MaxShared = 4

// sharedLists are the lists that requests of different keys count against together, by their fields.
func (p *Policy) sharedLists() []namedList {
	return []namedList{{"source", p.Source}, {"total", p.Total}}
}

// namedList is a list of limits and the field of the policy that has it.
type namedList struct {
	field  string
	limits []Limit
}

// validateShared returns every problem of the limits of the total and of a source, by themselves and with the other
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

// compare returns what of another list cannot be beside this one: a limit that can never be reached, because this list
// admits less in as long a window, and a name that a limit of this one has.
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
