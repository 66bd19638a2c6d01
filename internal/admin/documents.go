package admin

import (
	"slices"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/ratelimit"
)

// The documents below are what operators read and write. Each has a part that
// is only for reading and that is ignored when it is sent back, so that what
// was read can be edited and sent.

// defaultDoc holds for every client without a policy of its own.
type defaultDoc struct {
	User        []limitDoc `json:"user"`
	Client      []limitDoc `json:"client"`
	HideHeaders bool       `json:"hide_headers"`
}

// settingsDoc is what holds for all clients.
type settingsDoc struct {
	Mode          ratelimit.Mode `json:"mode"`
	CanaryPercent float64        `json:"canary_percent"`
	Default       defaultDoc     `json:"default"`
	Note          string         `json:"note,omitempty"`
}

func showSettings(p *clientcfg.Policies) settingsDoc {
	s := p.Settings()
	mode := s.Mode
	if mode == ratelimit.Unset {
		mode = ratelimit.Enforce
	}
	return settingsDoc{
		Mode: mode, CanaryPercent: s.CanaryPercent, Note: p.Set().Settings.Note,
		Default: defaultDoc{showLimits(s.Default.User), showLimits(s.Default.Client), s.Default.HideHeaders},
	}
}

// overrideDoc is that part of the settings that operators have changed, as
// readSettings reads it.
func overrideDoc(o clientcfg.SettingsOverride) map[string]any {
	doc, d := map[string]any{}, map[string]any{}
	if o.Mode != nil {
		doc["mode"] = *o.Mode
	}
	if o.CanaryPercent != nil {
		doc["canary_percent"] = *o.CanaryPercent
	}
	if o.User != nil {
		d["user"] = showLimits(o.User)
	}
	if o.Client != nil {
		d["client"] = showLimits(o.Client)
	}
	if o.HideHeaders != nil {
		d["hide_headers"] = *o.HideHeaders
	}
	if len(d) > 0 {
		doc["default"] = d
	}
	if o.Note != "" {
		doc["note"] = o.Note
	}
	return doc
}

// readSettings reads what is set in the document; the rest is left to the file.
func readSettings(v any) (o clientcfg.SettingsOverride, err error) {
	var errs ratelimit.FieldErrors
	f := fieldsOf(v, "", &errs)
	if mode, ok := f.text("mode"); ok {
		o.Mode = new(readMode(f, mode))
	}
	if share, ok := f.number("canary_percent"); ok {
		o.CanaryPercent = &share
	}
	if d, ok := f.get("default"); ok {
		sub := fieldsOf(d, "default", &errs)
		o.User, o.Client = readLimits(sub, "user"), readLimits(sub, "client")
		if hide, ok := sub.boolean("hide_headers"); ok {
			o.HideHeaders = &hide
		}
		sub.end()
	}
	o.Note = readNote(f)
	f.ignore("meta")
	f.end()
	if len(errs) > 0 {
		return o, errs
	}
	set := clientcfg.PolicySet{Settings: o}
	judged := set.Over(ratelimit.DefaultSettings())
	return o, judged.Validate()
}

// policyDoc is the policy of one client. A field that is absent leaves the
// decision to the settings.
type policyDoc struct {
	ClientID    string         `json:"client_id"`
	Trusted     bool           `json:"trusted"`
	Mode        ratelimit.Mode `json:"mode,omitempty"`
	User        []limitDoc     `json:"user,omitempty"`
	Client      []limitDoc     `json:"client,omitempty"`
	HideHeaders bool           `json:"hide_headers"`
	Note        string         `json:"note,omitempty"`
}

func showPolicy(clientID string, p clientcfg.ClientPolicy) policyDoc {
	return policyDoc{
		ClientID: clientID, Trusted: p.Trusted, Mode: p.Mode,
		User: showLimits(p.User), Client: showLimits(p.Client), HideHeaders: p.HideHeaders, Note: p.Note,
	}
}

func readPolicy(clientID string, v any) (p clientcfg.ClientPolicy, err error) {
	var errs ratelimit.FieldErrors
	f := fieldsOf(v, "", &errs)
	readClientID(f, clientID)
	p.Trusted, _ = f.boolean("trusted")
	if mode, ok := f.text("mode"); ok {
		p.Mode = readMode(f, mode)
	}
	p.User, p.Client = readLimits(f, "user"), readLimits(f, "client")
	p.HideHeaders, _ = f.boolean("hide_headers")
	p.Note = readNote(f)
	f.ignore("effective", "meta")
	f.end()
	if len(errs) > 0 {
		return p, errs
	}
	return p, p.Validate()
}

// candidateDoc is a candidate: limits tried beside the live ones.
type candidateDoc struct {
	ClientID string     `json:"client_id"`
	User     []limitDoc `json:"user,omitempty"`
	Client   []limitDoc `json:"client,omitempty"`
	Note     string     `json:"note,omitempty"`
}

func showCandidate(name string, c clientcfg.Candidate) candidateDoc {
	return candidateDoc{ClientID: name, User: showLimits(c.User), Client: showLimits(c.Client), Note: c.Note}
}

func readCandidate(name string, v any) (c clientcfg.Candidate, err error) {
	var errs ratelimit.FieldErrors
	f := fieldsOf(v, "", &errs)
	readClientID(f, name)
	c.User, c.Client = readLimits(f, "user"), readLimits(f, "client")
	c.Note = readNote(f)
	f.ignore("since", "activity", "meta")
	f.end()
	if len(errs) == 0 && c.User == nil && c.Client == nil {
		f.fail("user", "a candidate needs limits under user, client or both")
	}
	if len(errs) > 0 {
		return c, errs
	}
	policy := ratelimit.Policy{User: c.User, Client: c.Client}
	return c, policy.Validate()
}

// readClientID accepts the name of the resource, as it was read with it.
func readClientID(f *fields, want string) {
	if id, ok := f.text("client_id"); ok && id != want {
		f.fail("client_id", "%q is not that of the address, %q", shorten(id), want)
	}
}

// readMode is stricter than a policy read from a file: an empty text is no mode.
func readMode(f *fields, text string) ratelimit.Mode {
	modes := []ratelimit.Mode{ratelimit.Enforce, ratelimit.DryRun, ratelimit.Off}
	m := ratelimit.Mode(text)
	if !slices.Contains(modes, m) {
		f.fail("mode", "%q is none of %q, %q, %q; leave it out, or set it to null, to have none of its own",
			shorten(text), modes[0], modes[1], modes[2])
	}
	return m
}

func readNote(f *fields) string {
	note, _ := f.text("note")
	if err := clientcfg.ValidateNote(note); err != nil {
		f.fail("note", "%v", err)
	}
	return note
}
