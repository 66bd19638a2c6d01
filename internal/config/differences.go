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
