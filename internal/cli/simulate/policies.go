package simulate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"oauth-server/internal/admin/adminapi"
	"oauth-server/internal/cli/command"
	"oauth-server/internal/cli/limits/syntax"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/config"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/simulate"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// policyFiles are the files of --policies.
type policyFiles struct {
	config, limits string // File names; empty if not given
	all            simulate.Policies
	rateLimit      map[string]any  // of the configuration file
	file           *syntax.File    // File of limits; nil if not given
	settings       json.RawMessage // Settings in file; nil if not set
	text           string          // text of file
}

// readPolicies reads the files of --policies. The error lists all problems with their lines.
func (s *simulation) readPolicies() (simulate.Policies, error) {
	f := policyFiles{all: simulate.Policies{
		Settings: ratelimit.DefaultSettings(), Tiers: map[string]ratelimit.Policy{}, TierOf: map[string]string{},
	}}
	for _, path := range s.policies {
		name, text, err := syntax.ReadFile(s.In, path)
		if err != nil {
			return f.all, err
		}
		doc, errs := strict.ParseYAML(name, text)
		of := &f.limits
		if isConfiguration(doc) {
			of = &f.config
		}
		switch {
		case len(errs) > 0:
			return f.all, errs
		case *of != "":
			return f.all, command.Usagef("--policies: %s and %s are of the same kind: give at most one configuration file and one file of limits", name, *of)
		case of == &f.config:
			err = f.readConfig(doc)
		default:
			f.text = string(text)
			f.file, err = syntax.ParseFile(name, text)
		}
		if *of = name; err != nil {
			return f.all, err
		}
	}
	f.all.Settings.Clients = maps.Clone(f.all.Settings.Clients)
	if f.all.Settings.Clients == nil {
		f.all.Settings.Clients = map[string]ratelimit.Policy{}
	}
	if f.file != nil { // Takes precedence over the configuration file, in any order
		if err := f.readLimits(f.file); err != nil {
			return f.all, err
		}
		if slices.ContainsFunc(f.file.Targets(), func(target string) bool { return strings.HasPrefix(target, "candidates/") }) {
			s.Note("Ignoring the candidates in %s; try their limits with --limit.", f.limits)
		}
		f.settings = f.file.Values[clientcfg.SettingsTarget]
	}
	s.files = f
	return f.all, nil
}

// isConfiguration reports whether a file is a configuration file and not a file of limits, even
// with a misspelt field.
func isConfiguration(doc *strict.Value) bool {
	var fields map[string]*strict.Value
	if doc == nil || !doc.IsObject() {
		return false
	}
	_ = doc.Decode(&fields, nil) // problems are reported later
	var known []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Config]()) {
		known = append(known, strict.Name(f))
	}
	near := false
	for name := range fields {
		if slices.Contains(known, name) {
			return true
		}
		near = near || strict.Suggest(name, adminapi.Sections) == "" && strict.Suggest(name, known) != ""
	}
	return near
}

// readConfig reads the section rate_limit of a configuration file.
func (f *policyFiles) readConfig(doc *strict.Value) error {
	cfg, origins := config.Default(), map[string]string{}
	errs := doc.Decode(cfg, origins)
	f.all.Settings = cfg.RateLimit.Settings
	found := fielderr.Of(f.all.Settings.Validate()).Under("rate_limit")
	for i := range found {
		found[i].Origin = fielderr.Nearest(origins, found[i].Path)
	}
	errs.AddUnreported(found)
	var values map[string]any
	_ = doc.Decode(&values, nil) // problems are reported later
	if f.rateLimit, _ = values["rate_limit"].(map[string]any); f.rateLimit == nil {
		f.rateLimit = map[string]any{}
	}
	return errs.Err()
}

// readLimits reads a file of limits on top of the earlier policies and validates it as the server
// does.
func (f *policyFiles) readLimits(file *syntax.File) error {
	var errs fielderr.Errors
	for _, target := range file.Targets() {
		section, name, _ := strings.Cut(target, "/")
		for _, e := range fielderr.Of(f.add(section, name, file.Parsed[target])) {
			if e.Origin == "" {
				e = file.Inside(target, e.Path, e.Message)
			} else {
				e = fielderr.Errors{e}.Under(file.Paths[target])[0]
			}
			errs = append(errs, e)
		}
	}
	for id, tier := range f.all.TierOf {
		if _, there := f.all.Tiers[tier]; !there {
			errs = append(errs, file.Inside(clientcfg.PolicyTarget(id), "tier", fmt.Sprintf("tier %q does not exist", tier)))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	_, err := f.all.Compile() // checks across several targets
	return err
}

// Add adds a target, parsed as the admin API parses it.
func (f *policyFiles) add(section, name string, v *strict.Value) error {
	switch section {
	case "settings":
		o, err := adminapi.ReadSettings(v)
		clients := f.all.Settings.Clients
		f.all.Settings = o.Over(f.all.Settings)
		f.all.Settings.Clients = clients
		return err
	case "tiers":
		t, err := adminapi.ReadTier(name, v)
		f.all.Tiers[name] = t.Policy
		return err
	case "policies":
		p, err := adminapi.ReadPolicy(name, v)
		if f.all.Settings.Clients[name] = p.Policy; p.Tier != "" {
			f.all.TierOf[name] = p.Tier
		}
		return err
	case "overrides":
		id, user, _ := strings.Cut(name, " ")
		o, err := adminapi.ReadOverride(id, user, v)
		f.all.Overrides = append(f.all.Overrides, simulate.Override{ClientID: id, Username: user, User: o.User})
		return err
	default: // candidates: they are not simulated
		_, err := adminapi.ReadCandidate(name, v)
		return err
	}
}
