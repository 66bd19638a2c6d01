package config

import (
	"fmt"
	"reflect"
	"strings"
)

// setting is an option with the values that one source gave it.
type setting struct {
	option Option
	values []string
	origin string
}

// flagSettings gathers the values of repeated flags.
func flagSettings(flags []FlagValue) (settings []setting, problems FieldErrors) {
	index := map[string]int{}
	for _, f := range flags {
		if i, ok := index[f.Name]; ok {
			settings[i].values = append(settings[i].values, f.Value)
			continue
		}
		o, ok := optionByName(f.Name)
		if !ok {
			problems.addf("--"+f.Name, "unknown flag")
			continue
		}
		index[f.Name] = len(settings)
		settings = append(settings, setting{option: o, values: []string{f.Value}, origin: "--" + f.Name})
	}
	return settings, problems
}

// overlay sets what one source says over what weaker ones said.
func (c *Config) overlay(layer []setting, origins map[string]string) (problems FieldErrors) {
	c.Store.yieldTo(layer)
	for _, s := range layer {
		v, err := at(reflect.ValueOf(c).Elem(), s.option.Path)
		if err == nil {
			err = setValues(v, s.values)
		}
		if err != nil {
			problems = append(problems, Problem{Path: s.option.Path, Message: err.Error(), Origin: s.origin})
		}
		origins[s.option.Path] = s.origin
	}
	return problems
}

// yieldTo forgets the store of weaker sources when a stronger one names another.
func (s *Store) yieldTo(layer []setting) {
	for _, set := range layer {
		switch set.option.Path {
		case "store.embedded.path":
			s.MongoDB = nil
		case "store.mongodb.uri":
			s.Embedded = nil
		}
	}
}

// at returns the field of that path, making what leads to it.
func at(v reflect.Value, path string) (reflect.Value, error) {
	for name := range strings.SplitSeq(path, ".") {
		field, ok := fieldByTag(v, name)
		if !ok {
			return reflect.Value{}, fmt.Errorf("no field %s", path)
		}
		if field.Kind() == reflect.Pointer {
			if field.IsNil() {
				field.Set(reflect.New(field.Type().Elem()))
				if p, ok := field.Interface().(presetter); ok {
					p.preset()
				}
			}
			field = field.Elem()
		}
		v = field
	}
	return v, nil
}

// setValues parses values into v: a list takes all, split at commas; anything
// else the last, as is usual for repeated flags.
func setValues(v reflect.Value, values []string) error {
	if v.Kind() != reflect.Slice {
		return setText(v, values[len(values)-1])
	}
	out := reflect.MakeSlice(v.Type(), 0, len(values))
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		elem := reflect.New(v.Type().Elem()).Elem()
		if err := setText(elem, strings.TrimSpace(item)); err != nil {
			return err
		}
		out = reflect.Append(out, elem)
	}
	v.Set(out)
	return nil
}
