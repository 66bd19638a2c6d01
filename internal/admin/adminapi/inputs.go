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
// the stored types. It skips read-only fields, which lets an operator read a document, edit it and
// send it back. Errors are or wrap [fielderr.Errors], with all problems.

// limitsInput is what all documents with limits have. A nil field is absent.
type limitsInput struct {
	User        []ratelimit.Limit      `json:"user,omitempty"`
	Client      []ratelimit.Limit      `json:"client,omitempty"`
	Total       []ratelimit.Limit      `json:"total,omitempty"`
	Source      []ratelimit.Limit      `json:"source,omitempty"`
	OverLimit   *ratelimit.OverLimit   `json:"over_limit,omitempty"`
	MaxWait     *ratelimit.Duration    `json:"max_wait,omitempty"`
	MaxWaiting  *int                   `json:"max_waiting,omitempty"`
	Ban         *ratelimit.Ban         `json:"ban,omitempty"`
	Criticality *ratelimit.Criticality `json:"criticality,omitempty"`
}

// policy returns the policy, and the errors that ratelimit does not report, because it treats an
// empty value as absent.
func (in *limitsInput) policy() (p ratelimit.Policy, errs fielderr.Errors) {
	p = ratelimit.Policy{
		User: in.User, Client: in.Client, Total: in.Total, Source: in.Source, MaxWait: in.MaxWait, MaxWaiting: in.MaxWaiting, Ban: in.Ban,
		OverLimit: valueOf(in.OverLimit), Criticality: valueOf(in.Criticality),
	}
	errs.AddUnreported(checkLists(in.User, in.Client, in.Total, in.Source))
	errs.AddUnreported(checkOverLimit(in.OverLimit))
	errs.AddUnreported(checkCriticality(in.Criticality))
	return p, errs
}

// valueOf returns what v points to, or the zero value.
func valueOf[V any](v *V) (value V) {
	if v != nil {
		value = *v
	}
	return value
}

// reference returns a pointer to a value, or nil for the zero value.
func reference[V comparable](v V) *V {
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
		limitsInput
		HideHeaders *bool `json:"hide_headers,omitempty"`
	} `json:"default,omitzero"`
	Note string      `json:"note,omitempty"`
	Meta strict.Skip `json:"meta,omitzero"`
}

// SetByOperators is the inverse of ReadSettings.
func SetByOperators(o *clientcfg.Value) any {
	var in settingsInput
	in.Mode, in.CanaryPercent, in.Note = reference(o.Mode), o.CanaryPercent, o.Note
	in.Default.HideHeaders = o.HideHeaders
	in.Default.limitsInput = limitsInput{
		User: o.User, Client: o.Client, Total: o.Total, Source: o.Source, OverLimit: reference(o.OverLimit),
		MaxWait: o.MaxWait, MaxWaiting: o.MaxWaiting, Ban: o.Ban, Criticality: reference(o.Criticality),
	}
	return in
}

// ReadSettings reads the settings for all clients.
func ReadSettings(v *strict.Value) (o clientcfg.Value, err error) {
	var in settingsInput
	errs := v.Decode(&in, nil)
	policy, wrong := in.Default.policy()
	o.Policy, o.CanaryPercent, o.Note = policy, in.CanaryPercent, in.Note
	o.Mode, o.HideHeaders = valueOf(in.Mode), in.Default.HideHeaders
	checked := o.Over(ratelimit.DefaultSettings())
	errs.AddUnreported(checkMode(in.Mode))
	errs.AddUnreported(checkNote(in.Note))
	errs.AddUnreported(wrong.Under("default"))
	errs.AddUnreported(checkWaiting(o.MaxWait, o.MaxWaiting).Under("default"))
	errs.AddUnreported(fielderr.Of(checked.Validate()))
	return o, errs.Err()
}

// policyInput is what a tier and the policy of a client have.
type policyInput struct {
	Mode *ratelimit.Mode `json:"mode"`
	limitsInput
	HideHeaders bool        `json:"hide_headers"`
	Note        string      `json:"note"`
	Meta        strict.Skip `json:"meta"`
}

func (in *policyInput) policy() (ratelimit.Policy, fielderr.Errors) {
	p, wrong := in.limitsInput.policy()
	p.Mode, p.HideHeaders = valueOf(in.Mode), reference(in.HideHeaders)
	var errs fielderr.Errors
	errs.AddUnreported(checkMode(in.Mode))
	errs.AddUnreported(checkNote(in.Note))
	errs.AddUnreported(wrong)
	return p, errs
}

// ReadTier reads the tier of that name.
func ReadTier(name string, v *strict.Value) (t clientcfg.Value, err error) {
	var in struct {
		Name *string `json:"name"`
		policyInput
		Clients strict.Skip `json:"clients"`
	}
	errs := v.Decode(&in, nil)
	policy, wrong := in.policy()
	t.Policy, t.Note = policy, in.Note
	if in.Name != nil && *in.Name != name {
		errs.Add("name", "%q differs from the address, which has %q", *in.Name, name)
	}
	errs.AddUnreported(checkTierName("name", name))
	errs.AddUnreported(wrong)
	errs.AddUnreported(fielderr.Of(t.Validate()))
	return t, errs.Err()
}

// ReadPolicy reads the policy of a client.
func ReadPolicy(clientID string, v *strict.Value) (p clientcfg.Value, err error) {
	var in struct {
		ClientID *string `json:"client_id"`
		Trusted  bool    `json:"trusted"`
		Tier     *string `json:"tier"`
		policyInput
		Effective strict.Skip `json:"effective"`
	}
	errs := v.Decode(&in, nil)
	policy, wrong := in.policy()
	p.Policy, p.Note, p.Tier = policy, in.Note, valueOf(in.Tier)
	if p.Trusted = in.Trusted; in.Tier != nil {
		errs.AddUnreported(checkTierName("tier", p.Tier))
	}
	errs.AddUnreported(CheckClientID(in.ClientID, clientID))
	errs.AddUnreported(wrong)
	errs.AddUnreported(fielderr.Of(p.Validate()))
	return p, errs.Err()
}

// ReadOverride reads the limits of a user at a client.
func ReadOverride(clientID, username string, v *strict.Value) (clientcfg.Value, error) {
	var in struct {
		ClientID *string           `json:"client_id"`
		Username *string           `json:"username"`
		User     []ratelimit.Limit `json:"user"`
		Note     string            `json:"note"`
		Meta     strict.Skip       `json:"meta"`
	}
	errs := v.Decode(&in, nil)
	errs.AddUnreported(CheckClientID(in.ClientID, clientID))
	if in.Username != nil && *in.Username != username {
		errs.Add("username", "%q differs from the address, which has %q", *in.Username, username)
	}
	errs.AddUnreported(checkNote(in.Note))
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
func ReadCandidate(name string, v *strict.Value) (c clientcfg.Value, err error) {
	var in struct {
		ClientID *string `json:"client_id"`
		limitsInput
		Note     string      `json:"note"`
		Since    strict.Skip `json:"since"`
		Activity strict.Skip `json:"activity"`
		Meta     strict.Skip `json:"meta"`
	}
	errs := v.Decode(&in, nil)
	policy, wrong := in.policy()
	c.Policy, c.Note = policy, in.Note
	errs.AddUnreported(CheckClientID(in.ClientID, name))
	errs.AddUnreported(checkNote(in.Note))
	errs.AddUnreported(wrong)
	if len(errs) == 0 && in.User == nil && in.Client == nil && in.Total == nil && in.Source == nil {
		errs.Add("user", "a candidate needs limits under user, client, total or source; to try only over_limit, max_wait or ban, repeat the live limits")
	}
	errs.AddUnreported(fielderr.Of(c.Validate()))
	return c, errs.Err()
}

// CheckClientID accepts the client_id of the resource in the document, or none.
func CheckClientID(id *string, want string) (errs fielderr.Errors) {
	if id != nil && *id != want {
		errs.Add("client_id", "%q differs from the address, which has %q", *id, want)
	}
	return errs
}

// checkTierName rejects invalid tier names. An empty name is invalid too: it differs from an absent
// one.
func checkTierName(field, name string) (errs fielderr.Errors) {
	if err := clientcfg.ValidateTierName(name); err != nil {
		errs.Add(field, "%v", err)
	}
	return errs
}

// checkMode rejects an empty text, which ratelimit treats as absent.
func checkMode(m *ratelimit.Mode) (errs fielderr.Errors) {
	modes := []ratelimit.Mode{ratelimit.Enforce, ratelimit.DryRun, ratelimit.Off}
	if m != nil && !slices.Contains(modes, *m) {
		errs.Add("mode", "%q is not one of %q, %q, %q; omit it, or set it to null, to inherit the value",
			*m, modes[0], modes[1], modes[2])
	}
	return errs
}

// checkOverLimit rejects an empty text, which ratelimit treats as absent.
func checkOverLimit(o *ratelimit.OverLimit) (errs fielderr.Errors) {
	if o != nil && *o == "" {
		errs.Add("over_limit", "%q is not one of %q, %q; omit it, or set it to null, to inherit the value",
			*o, ratelimit.OverLimitDeny, ratelimit.OverLimitReuse)
	}
	return errs
}

// checkCriticality rejects an empty text. Decoding has already rejected all other invalid values.
func checkCriticality(c *ratelimit.Criticality) (errs fielderr.Errors) {
	if c != nil && *c == ratelimit.CriticalityUnset {
		errs.Add("criticality", `"" is not one of "%s"; omit it, or set it to null, to inherit the value`,
			strings.Join(ratelimit.CriticalityNames(), `", "`))
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

// checkLists rejects empty lists, which ratelimit treats as absent.
func checkLists(user, client, total, source []ratelimit.Limit) (errs fielderr.Errors) {
	for _, l := range []struct {
		name string
		list []ratelimit.Limit
	}{{"user", user}, {"client", client}, {"total", total}, {"source", source}} {
		if l.list != nil && len(l.list) == 0 {
			errs.Add(l.name, "needs at least one limit; omit it, or set it to null, to inherit the value")
		}
	}
	return errs
}

func checkNote(note string) (errs fielderr.Errors) {
	if err := clientcfg.ValidateNote(note); err != nil {
		errs.Add("note", "%v", err)
	}
	return errs
}
