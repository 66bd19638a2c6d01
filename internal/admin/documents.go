package admin

import (
	"cmp"
	"slices"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict"
)

// The documents that operators read are in adminapi. Those that they send are decoded here,
// strictly, into the types that are stored. Fields that are only for reading are skipped, so
// that a document can be read, edited and sent back.

func showSettings(p *clientcfg.PolicySnapshot) adminapi.Settings {
	s := p.Settings()
	mode := s.Mode
	if mode == ratelimit.Unset {
		mode = ratelimit.Enforce
	}
	return adminapi.Settings{
		Mode: string(mode), CanaryPercent: s.CanaryPercent, Note: p.Set().Settings.Note,
		Default: adminapi.Default{
			User: adminapi.ShowLimits(s.Default.User), Client: adminapi.ShowLimits(s.Default.Client), Total: adminapi.ShowLimits(s.Default.Total), Source: adminapi.ShowLimits(s.Default.Source),
			OverLimit: string(cmp.Or(s.Default.OverLimit, ratelimit.OverLimitDeny)), Ban: s.Default.Ban, HideHeaders: s.Default.HideHeaders,
			Waits: adminapi.ShowWaits(s.Default.MaxWait, s.Default.MaxWaiting),
		},
	}
}

// settingsInput is the settings as they are sent. An absent field is as in the configuration
// file.
type settingsInput struct {
	Mode          *ratelimit.Mode `json:"mode,omitempty"`
	CanaryPercent *float64        `json:"canary_percent,omitempty"`
	Default       struct {
		User        []ratelimit.Limit    `json:"user,omitempty"`
		Client      []ratelimit.Limit    `json:"client,omitempty"`
		Total       []ratelimit.Limit    `json:"total,omitempty"`
		Source      []ratelimit.Limit    `json:"source,omitempty"`
		OverLimit   *ratelimit.OverLimit `json:"over_limit,omitempty"`
		MaxWait     *ratelimit.MaxWait   `json:"max_wait,omitempty"`
		MaxWaiting  *int                 `json:"max_waiting,omitempty"`
		Ban         *ratelimit.Ban       `json:"ban,omitempty"`
		HideHeaders *bool                `json:"hide_headers,omitempty"`
	} `json:"default,omitzero"`
	Note string      `json:"note,omitempty"`
	Meta strict.Skip `json:"meta,omitzero"`
}

// setByOperators is the inverse of readSettings.
func setByOperators(o clientcfg.SettingsOverride) (in settingsInput) {
	in.Mode, in.CanaryPercent, in.Note = o.Mode, o.CanaryPercent, o.Note
	in.Default.User, in.Default.Client, in.Default.HideHeaders = o.User, o.Client, o.HideHeaders
	in.Default.Total, in.Default.Source = o.Total, o.Source
	in.Default.OverLimit, in.Default.MaxWait, in.Default.MaxWaiting, in.Default.Ban = o.OverLimit, o.MaxWait, o.MaxWaiting, o.Ban
	return in
}

func readSettings(v *strict.Value) (clientcfg.SettingsOverride, error) {
	var in settingsInput
	errs := v.Decode(&in, nil)
	o := clientcfg.SettingsOverride{
		Mode: in.Mode, CanaryPercent: in.CanaryPercent, Note: in.Note,
		User: in.Default.User, Client: in.Default.Client, Total: in.Default.Total, Source: in.Default.Source,
		OverLimit: in.Default.OverLimit, Ban: in.Default.Ban, HideHeaders: in.Default.HideHeaders,
		MaxWait: in.Default.MaxWait, MaxWaiting: in.Default.MaxWaiting,
	}
	judged := o.Over(ratelimit.DefaultSettings())
	errs.AddUnreported(checkMode(in.Mode))
	errs.AddUnreported(checkNote(in.Note))
	errs.AddUnreported(checkLists(o.User, o.Client, o.Total, o.Source).Under("default"))
	errs.AddUnreported(checkOverLimit(o.OverLimit).Under("default"))
	errs.AddUnreported(checkWaiting(o.MaxWait, o.MaxWaiting).Under("default"))
	errs.AddUnreported(fielderr.Of(judged.Validate()))
	return o, errs.Err()
}

func showPolicy(clientID string, p clientcfg.ClientPolicy) adminapi.Policy {
	return adminapi.Policy{
		ClientID: clientID, Trusted: p.Trusted, Tier: p.Tier, Mode: string(p.Mode),
		User: adminapi.ShowLimits(p.User), Client: adminapi.ShowLimits(p.Client), Total: adminapi.ShowLimits(p.Total), Source: adminapi.ShowLimits(p.Source),
		OverLimit: string(p.OverLimit), Ban: p.Ban, HideHeaders: p.HideHeaders, Note: p.Note,
		Waits: adminapi.ShowWaits(p.MaxWait, p.MaxWaiting),
	}
}

func readPolicy(clientID string, v *strict.Value) (p clientcfg.ClientPolicy, err error) {
	var in struct {
		ClientID    *string              `json:"client_id"`
		Trusted     bool                 `json:"trusted"`
		Tier        *string              `json:"tier"`
		Mode        *ratelimit.Mode      `json:"mode"`
		User        []ratelimit.Limit    `json:"user"`
		Client      []ratelimit.Limit    `json:"client"`
		Total       []ratelimit.Limit    `json:"total"`
		Source      []ratelimit.Limit    `json:"source"`
		OverLimit   *ratelimit.OverLimit `json:"over_limit"`
		MaxWait     *ratelimit.MaxWait   `json:"max_wait"`
		MaxWaiting  *int                 `json:"max_waiting"`
		Ban         *ratelimit.Ban       `json:"ban"`
		HideHeaders bool                 `json:"hide_headers"`
		Note        string               `json:"note"`
		Effective   strict.Skip          `json:"effective"`
		Meta        strict.Skip          `json:"meta"`
	}
	errs := v.Decode(&in, nil)
	p.Policy = ratelimit.Policy{
		User: in.User, Client: in.Client, Total: in.Total, Source: in.Source, Trusted: in.Trusted, Ban: in.Ban, HideHeaders: in.HideHeaders, MaxWait: in.MaxWait, MaxWaiting: in.MaxWaiting,
	}
	if p.Note = in.Note; in.Mode != nil {
		p.Mode = *in.Mode
	}
	if in.OverLimit != nil {
		p.OverLimit = *in.OverLimit
	}
	if in.Tier != nil {
		p.Tier = *in.Tier
		errs.AddUnreported(checkTierName("tier", p.Tier))
	}
	errs.AddUnreported(checkClientID(in.ClientID, clientID))
	errs.AddUnreported(checkMode(in.Mode))
	errs.AddUnreported(checkNote(in.Note))
	errs.AddUnreported(checkLists(p.User, p.Client, p.Total, p.Source))
	errs.AddUnreported(checkOverLimit(in.OverLimit))
	errs.AddUnreported(fielderr.Of(p.Validate()))
	return p, errs.Err()
}

func showCandidate(name string, c clientcfg.Candidate) adminapi.Candidate {
	return adminapi.Candidate{
		ClientID: name, User: adminapi.ShowLimits(c.User), Client: adminapi.ShowLimits(c.Client),
		Total: adminapi.ShowLimits(c.Total), Source: adminapi.ShowLimits(c.Source),
		OverLimit: string(c.OverLimit), Waits: adminapi.ShowWaits(c.MaxWait, c.MaxWaiting), Ban: c.Ban, Note: c.Note,
	}
}

func readCandidate(name string, v *strict.Value) (c clientcfg.Candidate, err error) {
	var in struct {
		ClientID   *string              `json:"client_id"`
		User       []ratelimit.Limit    `json:"user"`
		Client     []ratelimit.Limit    `json:"client"`
		Total      []ratelimit.Limit    `json:"total"`
		Source     []ratelimit.Limit    `json:"source"`
		OverLimit  *ratelimit.OverLimit `json:"over_limit"`
		MaxWait    *ratelimit.MaxWait   `json:"max_wait"`
		MaxWaiting *int                 `json:"max_waiting"`
		Ban        *ratelimit.Ban       `json:"ban"`
		Note       string               `json:"note"`
		Since      strict.Skip          `json:"since"`
		Activity   strict.Skip          `json:"activity"`
		Meta       strict.Skip          `json:"meta"`
	}
	errs := v.Decode(&in, nil)
	errs.AddUnreported(checkClientID(in.ClientID, name))
	errs.AddUnreported(checkNote(in.Note))
	errs.AddUnreported(checkLists(in.User, in.Client, in.Total, in.Source))
	if len(errs) == 0 && in.User == nil && in.Client == nil && in.Total == nil && in.Source == nil {
		errs.Add("user", "a candidate needs limits under user, client, total or source; to try nothing but what becomes of requests over the limits, give those in force")
	}
	errs.AddUnreported(checkOverLimit(in.OverLimit))
	c = clientcfg.Candidate{
		User: in.User, Client: in.Client, Total: in.Total, Source: in.Source,
		MaxWait: in.MaxWait, MaxWaiting: in.MaxWaiting, Ban: in.Ban, Note: in.Note,
	}
	if in.OverLimit != nil {
		c.OverLimit = *in.OverLimit
	}
	policy := c.Policy()
	errs.AddUnreported(fielderr.Of(policy.Validate()))
	return c, errs.Err()
}

// checkClientID accepts the client_id of the resource, which is sent with it, and none.
func checkClientID(id *string, want string) (errs fielderr.Errors) {
	if id != nil && *id != want {
		errs.Add("client_id", "%q is not that of the address, %q", *id, want)
	}
	return errs
}

// checkMode refuses an empty text, which ratelimit takes for no mode.
func checkMode(m *ratelimit.Mode) (errs fielderr.Errors) {
	modes := []ratelimit.Mode{ratelimit.Enforce, ratelimit.DryRun, ratelimit.Off}
	if m != nil && !slices.Contains(modes, *m) {
		errs.Add("mode", "%q is none of %q, %q, %q; leave it out, or set it to null, to have none of its own",
			*m, modes[0], modes[1], modes[2])
	}
	return errs
}

// checkOverLimit refuses an empty text, which ratelimit takes for no choice.
func checkOverLimit(o *ratelimit.OverLimit) (errs fielderr.Errors) {
	if o != nil && *o == "" {
		errs.Add("over_limit", "%q is none of %q, %q; leave it out, or set it to null, to have none of its own",
			*o, ratelimit.OverLimitDeny, ratelimit.OverLimitReuse)
	}
	return errs
}

// checkWaiting refuses a max_waiting without the max_wait that it belongs to, which may be in the configuration file.
func checkWaiting(longest *ratelimit.MaxWait, atOnce *int) (errs fielderr.Errors) {
	if longest == nil && atOnce != nil {
		errs.Add("max_waiting", "it belongs to a max_wait: set both")
	}
	return errs
}

// checkLists refuses empty lists, which ratelimit takes for absent ones.
func checkLists(user, client, total, source []ratelimit.Limit) (errs fielderr.Errors) {
	for _, l := range []struct {
		name string
		list []ratelimit.Limit
	}{{"user", user}, {"client", client}, {"total", total}, {"source", source}} {
		if l.list != nil && len(l.list) == 0 {
			errs.Add(l.name, "needs at least one limit; leave it out, or set it to null, to have none of its own")
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
