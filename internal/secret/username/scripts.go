package username

import (
	"slices"
	"strings"
	"unicode"
)

// together are sets of scripts that names mix in practice without deceiving readers.
var together = [][]string{
	{"Latin", "Han", "Hiragana", "Katakana"}, // Japanese
	{"Latin", "Han", "Bopomofo"},             // Chinese
	{"Latin", "Han", "Hangul"},               // Korean
}

// Unmixed returns an error for a name that mixes scripts, because letters of one script can pass
// for letters of another: Cyrillic "а" in "pаul". It implements the level "Highly Restrictive" of
// UTS 39 section 5.2, by the property Script. Characters that belong to all scripts (Common,
// Inherited), such as digits, go with every script, and Japanese, Chinese and Korean go with Latin.
func Unmixed(name string) error {
	var scripts []string
	for _, r := range name {
		s := scriptOf(r)
		if s != "" && !slices.Contains(scripts, s) {
			scripts = append(scripts, s)
		}
	}
	if len(scripts) < 2 || slices.ContainsFunc(together, func(set []string) bool { return within(scripts, set) }) {
		return nil
	}
	slices.Sort(scripts)
	return invalid("mixes the scripts %s, which have similar letters", strings.Join(scripts, " and "))
}

func within(scripts, set []string) bool {
	return !slices.ContainsFunc(scripts, func(s string) bool { return !slices.Contains(set, s) })
}

// scriptOf returns the script of a character, or "" if it goes with every script.
func scriptOf(r rune) string {
	if r <= unicode.MaxASCII {
		if unicode.IsLetter(r) {
			return "Latin"
		}
		return ""
	}
	if unicode.In(r, unicode.Common, unicode.Inherited) {
		return ""
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return "Unknown"
}
