package config

import (
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// setting is an option with the values that one source gives it.
type setting struct {
	option Option
	values []string
	origin string
}

// flagSettings returns one setting per flag, with all values of a repeated flag.
func flagSettings(flags []FlagValue) (settings []setting, problems fielderr.Errors) {
	index := map[string]int{}
	for _, f := range flags {
		if i, ok := index[f.Name]; ok {
			settings[i].values = append(settings[i].values, f.Value)
			continue
		}
		o, ok := optionByName(f.Name)
		if !ok {
			problems.Add("--"+f.Name, "unknown flag")
			continue
		}
		index[f.Name] = len(settings)
		settings = append(settings, setting{option: o, values: []string{f.Value}, origin: "--" + f.Name})
	}
	return settings, problems
}

// overlay applies the settings of one source over the settings of weaker ones.
func (c *Config) overlay(layer []setting, origins map[string]string) (problems fielderr.Errors) {
	c.Store.yieldTo(layer)
	for _, s := range layer {
		if err := strict.Set(c, s.option.Path, s.values); err != nil {
			problems = append(problems, fielderr.Error{Path: s.option.Path, Message: err.Error(), Origin: s.origin})
		}
		origins[s.option.Path] = s.origin
	}
	return problems
}

// yieldTo removes the store of weaker sources if this source chooses the other store, or the other
// form of the URI.
func (s *Store) yieldTo(layer []setting) {
	for _, set := range layer {
		switch set.option.Path {
		case "store.embedded.path":
			s.MongoDB = nil
		case "store.mongodb.uri", "store.mongodb.uri_file":
			s.Embedded = nil
			if m := s.MongoDB; m != nil {
				s.MongoDB = &MongoDB{Database: m.Database}
			}
		}
	}
}
