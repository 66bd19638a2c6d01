package config

import (
	"reflect"

	"oauth-server/internal/strict"
)

// Differences returns the paths of the fields that differ between two configurations, in the order
// of the fields. A list or a map counts as one field. The paths contain no values, which may be
// secret.
func Differences(a, b *Config) []string {
	return differences("", reflect.ValueOf(a), reflect.ValueOf(b))
}

func differences(path string, a, b reflect.Value) (paths []string) {
	if a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() {
		a, b = a.Elem(), b.Elem()
	}
	if a.Kind() != reflect.Struct {
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			paths = append(paths, path)
		}
		return paths
	}
	for i := range a.NumField() {
		f, at := a.Type().Field(i), path
		if !f.Anonymous {
			if at != "" {
				at += "."
			}
			at += strict.Name(f)
		}
		paths = append(paths, differences(at, a.Field(i), b.Field(i))...)
	}
	return paths
}

// With returns a copy of c with the fields of from at these paths, as in [Differences]. Paths that do
// not exist are left out.
func (c *Config) With(from *Config, paths []string) *Config {
	next := *c
	for _, path := range paths {
		to, err := strict.At(&next, path)
		value, missing := strict.At(from, path)
		if err == nil && missing == nil {
			to.Set(value)
		}
	}
	return &next
}
