package clientcfg

import (
	"encoding/json"
	"fmt"

	"oauth-server/internal/fielderr"
)

// putTierOrOverride is put for tiers and overrides. Any other target is an error.
func (d *draft) putTierOrOverride(target string, value json.RawMessage, version int64) error {
	if name, is := TierOf(target); is {
		t, err := optional[Tier](target, value)
		if err != nil {
			return err
		}
		if t != nil {
			t.Changed = version
		}
		d.putTier(name, t)
		return nil
	}
	if id, username, is := OverrideOf(target); is {
		o, err := optional[Override](target, value)
		if err != nil {
			return err
		}
		if o != nil {
			o.Changed = version
		}
		d.putOverride(id, username, o)
		return nil
	}
	return fmt.Errorf("%w: %s is no target", ErrUnreadable, target)
}

func (d *draft) putTier(name string, t *Tier) {
	var errs fielderr.Errors
	if err := ValidateTierName(name); err != nil {
		errs.Add(fielderr.Join("tiers", name), "%v", err)
	} else if t == nil {
		errs = fielderr.Of(d.live.SetTier(name, nil))
	} else {
		errs = fielderr.Of(d.live.SetTier(name, t.Policy()))
	}
	if len(errs) > 0 {
		d.errs = append(d.errs, errs...)
		return
	}
	if d.tiers == nil {
		d.tiers, d.removed = d.set.Tiers.Edit(), map[string]bool{}
	}
	put(d.tiers, name, t)
	if t == nil {
		d.removed[name] = true
	} else {
		delete(d.removed, name)
	}
}

func (d *draft) putOverride(clientID, username string, o *Override) {
	if o != nil && len(o.User) == 0 {
		d.errs.Add(fielderr.Join("overrides", OverrideKey(clientID, username))+".user", "needs at least one limit")
		return
	}
	var own Override
	if o != nil {
		own = *o
	}
	if errs := fielderr.Of(d.live.SetOverride(clientID, username, own.User)); len(errs) > 0 {
		d.errs = append(d.errs, errs...)
		return
	}
	if d.overrides == nil {
		d.overrides = d.set.Overrides.Edit()
	}
	put(d.overrides, OverrideKey(clientID, username), o)
}

// names records which tier a client's policy names. finish checks it, because the same entry may
// create the tier later.
func (d *draft) names(clientID, tier string) {
	if tier == "" {
		delete(d.naming, clientID)
		return
	}
	if d.naming == nil {
		d.naming = map[string]string{}
	}
	d.naming[clientID] = tier
}
