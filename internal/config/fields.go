package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// join appends a field or a key to a path. A key that could be mistaken for
// several fields is quoted: rate_limit.clients["app.example.com"].
func join(path, key string) string {
	plain := key != "" && strings.Trim(key,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
	switch {
	case !plain:
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func tagOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func tags(t reflect.Type) []string {
	var names []string
	for i := range t.NumField() {
		if name := tagOf(t.Field(i)); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func fieldByTag(v reflect.Value, tag string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if name := tagOf(v.Type().Field(i)); name != "" && name == tag {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// suggest offers the nearest of the known names, if one is near.
func suggest(name string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if n := distance(strings.ToLower(name), k); n < least && n < len(k) {
			best, least = k, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is the Levenshtein distance, for names of sensible length.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
