package ratelimit

// ForRequest returns what applies to one request of the client: of the grant, 0 if it is not known, from the source
// address, as package network names it; empty: it is not counted by its source. It is e itself where neither makes a
// difference.
func (e *Effective) ForRequest(grant Grants, source string) *Effective {
	if !e.tellsGrants() {
		grant = 0
	}
	if source != "" && e.Source != nil {
		source = SourceUser + source
	} else {
		source = ""
	}
	if grant == e.grant && source == e.source {
		return e
	}
	asked := *e
	asked.grant, asked.source = grant, source
	return &asked
}

// tellsGrants reports whether any limit for users of the client may count requests of certain grants only.
func (e *Effective) tellsGrants() bool { return e.User != nil && e.User.grants || e.overrides != nil }

// Grant is that of the request that e is for, where it makes a difference; otherwise 0.
func (e *Effective) Grant() Grants { return e.grant }

// Only returns what of e counts a request against some of its lists only: that of the user or of the client itself,
// the total, and that of the source. It has no overrides. Nothing waits for a turn of what is not its own.
func (e *Effective) Only(own, total, source bool) *Effective {
	some := *e
	some.overrides = nil
	if !own {
		some.User, some.Client, some.Wait = nil, nil, Wait{}
	}
	if !total {
		some.Total = nil
	}
	if !source {
		some.Source = nil
	}
	return &some
}

// Own returns what of e counts a request against its own key only, that of the user or of the client itself, with
// the overrides.
func (e *Effective) Own() *Effective {
	own := *e
	own.Total, own.Source, own.source = nil, nil, ""
	return &own
}
