package username_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"oauth-server/internal/check"
	"oauth-server/internal/secret/username"
)

func TestCanonical(t *testing.T) {
	for name, tc := range map[string]struct{ given, want string }{ // want is empty if the name is refused
		// RFC 8265 section 3.6
		"address":             {"juliet@example.com", "juliet@example.com"},
		"two letters s":       {"fussball", "fussball"},
		"sharp s":             {"fu\u00dfball", "fu\u00dfball"},
		"one Greek letter":    {"\u03c0", "\u03c0"},
		"capital sigma":       {"\u03a3", "\u03c3"},
		"small sigma":         {"\u03c3", "\u03c3"},
		"final sigma":         {"\u03c2", "\u03c2"},
		"space":               {"foo bar", ""},
		"empty":               {"", ""},
		"compatibility digit": {"henry\u2163", ""},
		"symbol":              {"\u265a", ""},

		// RFC 8264 sections 4.1, 5.2 and 9
		"case":                           {"ALiCE", "alice"},
		"full width":                     {"\uff21\uff4c\uff49\uff43\uff45", "alice"},
		"half width":                     {"\uff71", "\u30a2"},
		"composed":                       {"\u00c4da", "\u00e4da"},
		"decomposed":                     {"A\u0308da", "\u00e4da"},
		"Kelvin sign":                    {"\u212aelvin", "kelvin"},
		"sharp S":                        {"FU\u1e9eBALL", "fu\u00dfball"},
		"dotted I":                       {"\u0130", "i\u0307"},
		"other scripts":                  {"山田太郎", "山田太郎"},
		"right to left":                  {"\u05d0\u05d1", "\u05d0\u05d1"},
		"mixed directions":               {"\u05d0a", ""},
		"digits first":                   {"42ada", "42ada"},
		"signs of ASCII":                 {`EXAMPLE\\Ada+x_y.z-!#$%&'*/=?^{|}~`, `example\\ada+x_y.z-!#$%&'*/=?^{|}~`},
		"middle dot between l and l":     {"l\u00b7l", "l\u00b7l"},
		"middle dot elsewhere":           {"a\u00b7l", ""},
		"joiner without virama":          {"a\u200db", ""},
		"Katakana dot in Latin":          {"a\u30fbb", ""},
		"digits of two Arabic kinds":     {"\u0627\u0660\u06f0", ""},
		"unassigned":                     {"a\u0378", ""},
		"private use":                    {"a\ue000", ""},
		"noncharacter":                   {"a\ufdd0", ""},
		"ignorable":                      {"a\u00ad", ""},
		"old Hangul jamo":                {"\u1100\u1100", ""},
		"ligature":                       {"\ufb01sh", ""},
		"no-break space":                 {"a\u00a0b", ""},
		"ideographic space":              {"a\u3000b", ""},
		"zero width":                     {"ali\u200bce", ""},
		"direction override":             {"ali\u202ece", ""},
		"replacement rune":               {"ali\ufffdce", ""},
		"NUL":                            {"ali\x00ce", ""},
		"line break":                     {"ali\nce", ""},
		"leading space":                  {" alice", ""},
		"invalid UTF-8":                  {"ali\xffce", ""},
		"surrogate":                      {"ali\xed\xa0\x80", ""},
		"longest":                        {strings.Repeat("A", username.MaxLength), strings.Repeat("a", username.MaxLength)},
		"too long":                       {strings.Repeat("a", username.MaxLength+1), ""},
		"too long before it is narrowed": {strings.Repeat("\uff21", username.MaxLength/3+1), ""},
		"too long in small letters":      {strings.Repeat("\u023a", username.MaxLength/2), ""}, // two bytes each, three in lower case
	} {
		t.Run(name, func(t *testing.T) {
			got, err := username.Canonical(tc.given)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("Canonical(%+q) = %+q, %v; want %+q", tc.given, got, err, tc.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		ok    bool
	}{
		"plain":            {"alice", true},
		"address":          {"alice@example.com", true},
		"other scripts":    {"Ælfrēd 山田", true},
		"longest":          {strings.Repeat("a", username.MaxLength), true},
		"too long":         {strings.Repeat("a", username.MaxLength+1), false},
		"empty":            {"", false},
		"leading space":    {" alice", false},
		"trailing tab":     {"alice\t", false},
		"NUL":              {"ali\x00ce", false},
		"line break":       {"ali\nce", false},
		"invalid UTF-8":    {"ali\xffce", false},
		"zero width":       {"ali\u200bce", false},
		"right to left":    {"ali\u202ece", false},
		"no-break space":   {"alice\u00a0bob", false},
		"replacement rune": {"ali\ufffdce", true},
	} {
		check.Equal(t, name, username.Check(tc.given) == nil, tc.ok)
	}
}

// TestEveryCharacter: the canonical form of every character, alone and with others, is stable, and
// its script is known.
func TestEveryCharacter(t *testing.T) {
	stable := func(name string) bool {
		canonical, err := username.Canonical(name)
		if err != nil {
			return false
		}
		if again, err := username.Canonical(canonical); again != canonical || err != nil {
			t.Errorf("Canonical(%+q) = %+q, and of that %+q, %v", name, canonical, again, err)
		}
		return true
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if plane := r >> 16; plane > 3 && plane != 14 && r%61 != 0 {
			continue // unassigned or for private use
		}
		if !utf8.ValidRune(r) || !stable("a"+string(r)) && !stable(string(r)) {
			continue
		}
		stable(string(r) + "\u0308")
		if err := username.Unmixed("a" + string(r)); err != nil && strings.Contains(err.Error(), "Unknown") {
			t.Errorf("the script of %+q is unknown", r)
		}
	}
}

// Attack (usernames): Lookalike letters. New names cannot mix scripts (UTS 39).
func TestUnmixed(t *testing.T) {
	for name, tc := range map[string]struct {
		given string
		ok    bool
	}{
		"Latin":                       {"ælfrēd", true},
		"only digits and signs":       {"2026-11", true},
		"Latin with digits and signs": {"ada_01@example.com", true},
		"Cyrillic with digits":        {"иван-42", true},
		"combining mark":              {"i\u0307", true},
		"Japanese":                    {"yamada山田さんカナ", true},
		"Chinese":                     {"chen陳ㄔㄣˊ", true},
		"Korean":                      {"kim金김", true},
		"Han and Latin":               {"ælfrēd山田", true},
		"prolonged sound":             {"データ", true},
		"Cyrillic а in Latin":         {"p\u0430ul", false},
		"Greek ο in Latin":            {"b\u03bfb", false},
		"Latin a in Cyrillic":         {"ив\u0061н", false},
		"Cyrillic and Greek":          {"\u0430\u03b1", false},
		"Hiragana and Hangul":         {"さ김", false},
		"Bopomofo and Hiragana":       {"ㄔさ", false},
		"Han and Cyrillic":            {"山\u0430", false},
		"Armenian in Latin":           {"h\u0570", false},
		"Cherokee in Latin":           {"a\uab70", false},
		"wholly Cyrillic, like Latin": {"\u0430\u0441\u0435", true}, // outside the scope of this rule
	} {
		check.Equal(t, name, username.Unmixed(tc.given) == nil, tc.ok)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, name := range []string{
		"alice", "ALICE", "\u0130", "\u03a3\u03c2", "A\u0308", "\uff21\uff9e", "\u212a", "\u1e9e", "\u05d0\u05d1", "l\u00b7l", "\u0958",
		"\u1fb3", "\u1f88", "\u0345\u0391", "\uff76\uff9e", "\xff", strings.Repeat("\u023a", 42),
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		canonical, err := username.Canonical(name)
		if err != nil {
			if canonical != "" {
				t.Errorf("Canonical(%+q) = %+q with an error", name, canonical)
			}
			return
		}
		if again, err := username.Canonical(canonical); again != canonical || err != nil {
			t.Errorf("Canonical(%+q) = %+q, and of that %+q, %v", name, canonical, again, err)
		}
		if canonical == "" || len(canonical) > username.MaxLength {
			t.Errorf("Canonical(%+q) has %d bytes", name, len(canonical))
		}
		_ = username.Unmixed(canonical)
	})
}
