package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/fielderr"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/strict"
)

// policyFiles are the files of --policies.
type policyFiles struct {
	config, limits string // names; empty: there is none
	all            simulate.Policies
	settings       json.RawMessage // of the file of limits; nil: it has none
	text           string          // of the file of limits
}

// readPolicies reads the files of --policies. The error has all that is wrong with them, with the lines.
func (s *simulation) readPolicies() (simulate.Policies, error) {
	f := policyFiles{all: simulate.Policies{
		Settings: ratelimit.DefaultSettings(), Tiers: map[string]ratelimit.Policy{}, TierOf: map[string]string{},
	}}
	var limits *limitsFile
	for _, path := range s.policies {
		name, text, err := readFile(s.in, path)
		if err != nil {
			return f.all, err
		}
		sections, err := sectionsOf(name, text)
		switch {
		case err != nil:
			return f.all, err
		case sections["rate_limit"] != nil && f.config != "", sections["rate_limit"] == nil && limits != nil:
			return f.all, usagef("--policies: %s and %s are of the same kind: give one configuration file and one file of limits at most", name, f.config+f.limits)
		case sections["rate_limit"] != nil:
			f.config = name
			err = f.readConfig(sections["rate_limit"])
		default:
			f.limits, f.text = name, string(text)
			limits, err = parseLimitsFile(name, text)
		}
		if err != nil {
			return f.all, err
		}
	}
	f.all.Settings.Clients = maps.Clone(f.all.Settings.Clients)
	if f.all.Settings.Clients == nil {
		f.all.Settings.Clients = map[string]ratelimit.Policy{}
	}
	if limits != nil { // over the configuration file, whichever is named first
		if err := f.readLimits(limits); err != nil {
			return f.all, err
		}
		if n := count(limits, "candidates"); n > 0 {
			s.note("%s: the candidates are not judged; try their limits with --limit.", f.limits)
		}
	}
	if limits != nil {
		f.settings = limits.values[clientcfg.SettingsTarget]
	}
	s.files = f
	return f.all, nil
}

func count(f *limitsFile, section string) (n int) {
	for target := range f.values {
		if strings.HasPrefix(target, section+"/") {
			n++
		}
	}
	return n
}

// sectionsOf returns the fields of the document in a file.
func sectionsOf(name string, text []byte) (map[string]*strict.Value, error) {
	v, errs := strict.ParseYAML(name, text)
	if len(errs) > 0 {
		return nil, errs
	}
	var fields map[string]*strict.Value
	if v != nil && v.IsObject() {
		_ = v.Decode(&fields, nil) // what is wrong is found again
	}
	return fields, nil
}

// readConfig reads the section rate_limit of a configuration file.
func (f *policyFiles) readConfig(v *strict.Value) error {
	limit, origins := config.Default().RateLimit, map[string]string{}
	errs := v.Decode(&limit, origins)
	f.all.Settings = limit.Settings
	found := fielderr.Of(f.all.Settings.Validate())
	for i := range found {
		found[i].Origin = originIn(found[i].Path, origins)
	}
	errs.AddUnreported(found)
	return errs.Under("rate_limit").Err()
}

// originIn is where a field stands in a file, or else the nearest field around it.
func originIn(path string, origins map[string]string) string {
	for ; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if origin, known := origins[path]; known {
			return origin
		}
	}
	return ""
}

// readLimits reads a file of limits onto what there is, and judges it as the server does.
func (f *policyFiles) readLimits(file *limitsFile) error {
	var errs fielderr.Errors
	for _, target := range file.targets() {
		section, name, _ := strings.Cut(target, "/")
		wrong, found := f.add(section, name, file.parsed[target])
		errs = append(errs, wrong.Under(file.paths[target])...)
		var judged fielderr.Errors
		for _, e := range found {
			judged = append(judged, file.inside(target, e.Path, e.Message))
		}
		errs.AddUnreported(judged)
	}
	for id, tier := range f.all.TierOf {
		if _, there := f.all.Tiers[tier]; !there {
			errs = append(errs, file.inside(clientcfg.PolicyTarget(id), "tier", fmt.Sprintf("there is no tier %q", tier)))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	_, err := f.all.Compile() // what concerns several targets
	return err
}

// The documents of a file of limits, with what the admin API takes besides.
type (
	settingsDocument struct {
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
	policyDocument struct {
		ratelimit.Policy
		Tier      string      `json:"tier,omitempty"`
		ClientID  strict.Skip `json:"client_id,omitzero"`
		Note      string      `json:"note,omitempty"`
		Effective strict.Skip `json:"effective,omitzero"`
		Meta      strict.Skip `json:"meta,omitzero"`
	}
	tierDocument struct {
		ratelimit.Policy
		Name strict.Skip `json:"name,omitzero"`
		Note string      `json:"note,omitempty"`
		Meta strict.Skip `json:"meta,omitzero"`
	}
	overrideDocument struct {
		User     []ratelimit.Limit `json:"user"`
		ClientID strict.Skip       `json:"client_id,omitzero"`
		Username strict.Skip       `json:"username,omitzero"`
		Note     string            `json:"note,omitempty"`
		Meta     strict.Skip       `json:"meta,omitzero"`
	}
)

// add adds a target. It returns what is wrong with its form, and what is wrong with its values.
func (f *policyFiles) add(section, name string, v *strict.Value) (errs, found fielderr.Errors) {
	switch section {
	case "settings":
		var d settingsDocument
		errs = v.Decode(&d, nil)
		o := clientcfg.SettingsOverride{
			Mode: d.Mode, CanaryPercent: d.CanaryPercent, User: d.Default.User, Client: d.Default.Client, Total: d.Default.Total,
			Source: d.Default.Source, OverLimit: d.Default.OverLimit, MaxWait: d.Default.MaxWait, MaxWaiting: d.Default.MaxWaiting,
			Ban: d.Default.Ban, HideHeaders: d.Default.HideHeaders,
		}
		clients := f.all.Settings.Clients
		f.all.Settings = o.Over(f.all.Settings)
		f.all.Settings.Clients = nil // those of the configuration file were judged
		found = fielderr.Of(f.all.Settings.Validate())
		f.all.Settings.Clients = clients
	case "tiers":
		var d tierDocument
		errs = v.Decode(&d, nil)
		f.all.Tiers[name], found = d.Policy, fielderr.Of(d.Validate())
	case "policies":
		var d policyDocument
		errs = v.Decode(&d, nil)
		found = fielderr.Of(d.Validate())
		f.all.Settings.Clients[name] = d.Policy
		if d.Tier != "" {
			f.all.TierOf[name] = d.Tier
		}
	case "overrides":
		var d overrideDocument
		errs = v.Decode(&d, nil)
		p := ratelimit.Policy{User: d.User}
		found = fielderr.Of(p.Validate())
		id, user, _ := strings.Cut(name, " ")
		f.all.Overrides = append(f.all.Overrides, simulate.Override{ClientID: id, Username: user, User: d.User})
	}
	return errs, found
}
