package ratelimit

// ForRequest returns the limits and settings for one request of the client. grant is the grant of
// the request; 0 means unknown. source is the source address in the format of package network; if
// it is empty, the source is not counted. ForRequest returns e itself if neither makes a
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

// tellsGrants reports whether any limit for users of the client may be restricted to certain
// grants.
func (e *Effective) tellsGrants() bool { return e.User != nil && e.User.grants || e.overrides != nil }

// Grant returns the grant that ForRequest was called with, or 0 if the grant makes no difference.
func (e *Effective) Grant() Grants { return e.grant }

// Only returns a copy of e that counts a request only against the chosen lists: own is the list of
// the user or of the client itself. The copy has no overrides. Without own it has no Wait either.
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

// Own returns a copy of e that counts a request only against its own key (the user or the client
// itself). It keeps the overrides.
func (e *Effective) Own() *Effective {
	own := *e
	own.Total, own.Source, own.source = nil, nil, ""
	return &own
}
