package adminapi

import (
	"slices"
	"strings"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// This file strictly decodes the documents that operators send, and that a file of limits has, into
// the stored types. Errors are or wrap [fielderr.Errors], with all problems.

// policy returns the policy, and the errors that ratelimit does not report, because it treats an
// empty value as absent.
func (l *Lists) policy() (p ratelimit.Policy, errs fielderr.Errors) {
	p = ratelimit.Policy{
		User: l.User, Client: l.Client, Total: l.Total, Source: l.Source, MaxWait: l.MaxWait, MaxWaiting: l.MaxWaiting, Ban: l.Ban,
		OverLimit: valueOf(l.OverLimit), Criticality: valueOf(l.Criticality),
	}
	for _, list := range []struct {
		name   string
		limits []ratelimit.Limit
	}{{"user", l.User}, {"client", l.Client}, {"total", l.Total}, {"source", l.Source}} {
		if list.limits != nil && len(list.limits) == 0 {
			errs.Add(list.name, "needs at least one limit"+orInherit)
		}
	}
	if l.OverLimit != nil && *l.OverLimit == "" {
		errs.Add("over_limit", `"" is not one of %q, %q`+orInherit, ratelimit.OverLimitDeny, ratelimit.OverLimitReuse)
	}
	if l.Criticality != nil && *l.Criticality == ratelimit.CriticalityUnset {
		errs.Add("criticality", `"" is not one of "%s"`+orInherit, strings.Join(ratelimit.CriticalityNames(), `", "`))
	}
	return p, errs
}

// orInherit ends the errors for empty values.
const orInherit = "; omit it, or set it to null, to inherit the value"

// valueOf returns what v points to, or the zero value.
func valueOf[V any](v *V) (value V) {
	if v != nil {
		value = *v
	}
	return value
}

// Reference returns a pointer to a value, or nil for the zero value.
func Reference[V comparable](v V) *V {
	var zero V
	if v == zero {
		return nil
	}
	return &v
}

// settingsInput is the settings as sent. An absent field keeps the value of the configuration file.
type settingsInput struct {
	Mode          *ratelimit.Mode `json:"mode,omitempty"`
	CanaryPercent *float64        `json:"canary_percent,omitempty"`
	Default       struct {
		Lists
		HideHeaders *bool `json:"hide_headers,omitempty"`
	} `json:"default,omitzero"`
	Note string `json:"note,omitempty"`
	Meta Meta   `json:"meta,omitzero" schema:"readonly"`
}

// SetByOperators is the inverse of ReadSettings.
func SetByOperators(o *clientcfg.Value) any {
	var in settingsInput
	in.Mode, in.CanaryPercent, in.Note = Reference(o.Mode), o.CanaryPercent, o.Note
	in.Default.Lists, in.Default.HideHeaders = ShowLists(&o.Policy), o.HideHeaders
	return in
}

// ReadSettings reads the settings for all clients.
func ReadSettings(v *strict.Value) (o clientcfg.Value, err error) {
	var in settingsInput
	errs := v.Decode(&in, nil)
	policy, wrong := in.Default.policy()
	o.Policy, o.CanaryPercent, o.Note = policy, in.CanaryPercent, in.Note
	o.Mode, o.HideHeaders = valueOf(in.Mode), in.Default.HideHeaders
	whole := o.Over(ratelimit.DefaultSettings())
	errs.AddUnreported(checkMode(in.Mode))
	errs.AddUnreported(checked("note", clientcfg.ValidateNote(in.Note)))
	errs.AddUnreported(wrong.Under("default"))
	errs.AddUnreported(checkWaiting(o.MaxWait, o.MaxWaiting).Under("default"))
	errs.AddUnreported(fielderr.Of(whole.Validate()))
	return o, errs.Err()
}

// policyOf returns the value of a client, a tier or a candidate.
func policyOf(l *Lists, mode *ratelimit.Mode, hide bool, note string) (v clientcfg.Value, errs fielderr.Errors) {
	p, wrong := l.policy()
	p.Mode, p.HideHeaders = valueOf(mode), Reference(hide)
	errs.AddUnreported(checkMode(mode))
	errs.AddUnreported(checked("note", clientcfg.ValidateNote(note)))
	errs.AddUnreported(wrong)
	return clientcfg.Value{Policy: p, Note: note}, errs
}

// ReadTier reads the tier of that name.
func ReadTier(name string, v *strict.Value) (clientcfg.Value, error) {
	in := Tier{Name: name}
	errs := v.Decode(&in, nil)
	t, wrong := policyOf(&in.Lists, in.Mode, in.HideHeaders, in.Note)
	errs = append(errs, checkName("name", in.Name, name)...)
	errs.AddUnreported(checked("name", clientcfg.ValidateTierName(name)))
	errs.AddUnreported(wrong)
	errs.AddUnreported(fielderr.Of(t.Validate()))
	return t, errs.Err()
}

// ReadPolicy reads the policy of a client.
func ReadPolicy(clientID string, v *strict.Value) (clientcfg.Value, error) {
	in := Policy{ClientID: clientID}
	errs := v.Decode(&in, nil)
	p, wrong := policyOf(&in.Lists, in.Mode, in.HideHeaders, in.Note)
	if p.Trusted, p.Tier = in.Trusted, valueOf(in.Tier); in.Tier != nil {
		errs.AddUnreported(checked("tier", clientcfg.ValidateTierName(p.Tier))) // an empty name differs from an absent one
	}
	errs.AddUnreported(checkName("client_id", in.ClientID, clientID))
	errs.AddUnreported(wrong)
	errs.AddUnreported(fielderr.Of(p.Validate()))
	return p, errs.Err()
}

// ReadOverride reads the limits of a user at a client.
func ReadOverride(clientID, username string, v *strict.Value) (clientcfg.Value, error) {
	in := Override{ClientID: clientID, Username: username}
	errs := v.Decode(&in, nil)
	errs.AddUnreported(checkName("client_id", in.ClientID, clientID))
	errs = append(errs, checkName("username", in.Username, username)...)
	errs.AddUnreported(checked("note", clientcfg.ValidateNote(in.Note)))
	if len(in.User) == 0 {
		var needed fielderr.Errors
		needed.Add("user", "needs at least one limit; to remove the user's own limits, use DELETE")
		errs.AddUnreported(needed)
	}
	limits := ratelimit.Policy{User: in.User}
	errs.AddUnreported(fielderr.Of(limits.Validate()))
	return clientcfg.Value{Policy: limits, Note: in.Note}, errs.Err()
}

// ReadCandidate reads a candidate: for a client, or for the default limits if name is the name of
// the candidate for all clients.
func ReadCandidate(name string, v *strict.Value) (clientcfg.Value, error) {
	in := Candidate{ClientID: name}
	errs := v.Decode(&in, nil)
	c, wrong := policyOf(&in.Lists, nil, false, in.Note)
	errs.AddUnreported(checkName("client_id", in.ClientID, name))
	errs.AddUnreported(wrong)
	if len(errs) == 0 && in.User == nil && in.Client == nil && in.Total == nil && in.Source == nil {
		errs.Add("user", "a candidate needs limits under user, client, total or source; to try only over_limit, max_wait or ban, repeat the live limits")
	}
	errs.AddUnreported(fielderr.Of(c.Validate()))
	return c, errs.Err()
}

// checkName accepts in a document only the name in its address.
func checkName(field, name, want string) (errs fielderr.Errors) {
	if name != want {
		errs.Add(field, "%q differs from the address, which has %q", name, want)
	}
	return errs
}

// checked returns the error of a field's value.
func checked(field string, err error) (errs fielderr.Errors) {
	if err != nil {
		errs.Add(field, "%v", err)
	}
	return errs
}

// checkMode rejects an empty text, which ratelimit treats as absent.
func checkMode(m *ratelimit.Mode) (errs fielderr.Errors) {
	modes := []ratelimit.Mode{ratelimit.Enforce, ratelimit.DryRun, ratelimit.Off}
	if m != nil && !slices.Contains(modes, *m) {
		errs.Add("mode", "%q is not one of %q, %q, %q"+orInherit, *m, modes[0], modes[1], modes[2])
	}
	return errs
}

// checkWaiting rejects a max_waiting without a max_wait in the same document. That max_wait may
// only be in the configuration file.
func checkWaiting(longest *ratelimit.Duration, atOnce *int) (errs fielderr.Errors) {
	if longest == nil && atOnce != nil {
		errs.Add("max_waiting", "needs max_wait: set both")
	}
	return errs
}
