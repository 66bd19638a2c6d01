package ratelimit

import (
	"iter"

	"oauth-server/internal/strict/fielderr"
)

// SetOverride gives one user of a client its own limits, which replace the client's list for users.
// An empty list removes the override. A client may have overrides without a policy. If the limits
// are invalid, SetOverride returns their problems as [fielderr.Errors], with their paths, and
// changes nothing.
func (e *CompiledEdit) SetOverride(clientID, username string, limits []Limit) error {
	if errs := validateLimits("user", limits); len(errs) > 0 {
		return errs.Under(fielderr.Join("overrides", clientID+" "+username)).Err()
	}
	edit, ok := e.overrides[clientID]
	if !ok {
		var had Map[*Limits]
		if o, has := e.byClient.Get(clientID); has && o.overrides != nil {
			had = *o.overrides
		}
		if e.overrides == nil {
			e.overrides = map[string]*MapEdit[*Limits]{}
		}
		edit = had.Edit()
		e.overrides[clientID] = edit
	}
	name := Key{ClientID: clientID, Username: username}.Bounded().Username
	if len(limits) == 0 {
		edit.Delete(name)
	} else {
		edit.Set(name, NewLimits(limits))
	}
	return nil
}

// giveOverrides applies the changed overrides to their clients.
func (e *CompiledEdit) giveOverrides() {
	for id, edit := range e.overrides {
		next := &own{}
		if o, ok := e.byClient.Get(id); ok {
			next = &own{Policy: o.Policy, lists: o.lists, tier: o.tier, ban: o.ban}
		}
		if m := edit.Map(); m.Len() > 0 {
			next.overrides = &m
		}
		e.give(id, next)
	}
	e.overrides = nil
}

// For returns the limits of the key. For a key without a username these are the limits of the
// client itself. For a user they are the override, if there is one, or else the limits for each
// user. For the key of a total or of a source they are the list Total or Source, which may be nil.
func (e *Effective) For(k Key) *Limits {
	switch {
	case k.IsTotal():
		return e.Total
	case k.IsSource():
		return e.Source
	}
	ls, _ := e.Of(k.Bounded())
	return ls
}

// HasOverrides reports whether any user of the client has an override.
func (e *Effective) HasOverrides() bool { return e.overrides != nil }

// HasOverride reports whether the key belongs to a user with an override.
func (e *Effective) HasOverride(k Key) bool {
	_, overridden := e.Of(k.Bounded())
	return overridden
}

// Of is For with a bounded key. It also reports whether the limits are an override.
func (e *Effective) Of(k Key) (ls *Limits, overridden bool) {
	if e.overrides == nil {
		return e.List(k), false
	}
	return e.Overriding(k)
}

// List is Of without overrides. Decisions call it directly because List is inlined and Of is not.
func (e *Effective) List(k Key) *Limits {
	if k.Username == "" {
		return e.Client
	}
	return e.User
}

// Overriding is Of with overrides.
func (e *Effective) Overriding(k Key) (ls *Limits, overridden bool) {
	if k.Username != "" {
		if ls, ok := e.overrides.Get(k.Username); ok {
			if e.Mode == DryRun {
				ls = ls.forDryRun()
			}
			return ls, true
		}
	}
	return e.List(k), false
}

// Overrides yields the users with an override and their limits, in no particular order. Usernames
// are as in bounded keys.
func (e *Effective) Overrides() iter.Seq2[string, *Limits] {
	if e.overrides == nil {
		return func(func(string, *Limits) bool) {}
	}
	return e.overrides.All()
}

// Overridden returns how many users have an override.
func (e *Effective) Overridden() int {
	if e.overrides == nil {
		return 0
	}
	return e.overrides.Len()
}

// Plain reports whether the request counts only against one plain limit, or against one of its own
// key and one of the total. Package counting has a fast path for this. Plain is inlined.
func (e *Effective) Plain(ls *Limits) bool {
	return ls.plain && (e.Total == nil || e.Total.plain) && e.SourceKey == ""
}
