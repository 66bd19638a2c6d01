package secret

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/ccojocar/zxcvbn-go/data"
)

// leastBits is the minimum strength of a password: 28 bits are 268 million guesses for an attacker
// who tries the likeliest passwords first.
const leastBits = 28

// judgedLength is how many characters of a password are examined. A long and easy password is
// already easy at its start, and the time grows with the length.
const judgedLength = 64

// Guessable reports whether an attacker would try the password early: a common password or name,
// one or two words, rows of the keyboard, repetitions, or one of the known words, such as the
// username, with the usual substitutions, digits and signs around it. It returns an error if a word
// list cannot be read.
//
// It uses the method of zxcvbn (Wheeler, "zxcvbn: Low-Budget Password Strength Estimation", 2016)
// in its simplest form, with the word lists of its Go port: it finds the cheapest way to compose
// the password from such parts. It does not use the port itself, because the port reads all lists
// at program start, which takes 40 ms and 10 MB in every server, and takes seconds for some
// passwords of 40 characters.
func Guessable(password string, known ...string) (bool, error) {
	common, err := commonWords()
	if err != nil {
		return false, err
	}
	defer lists.Put(common)
	return guessBits(dictionary{common, partsOf(known)}, password) < leastBits, nil
}

// dictionary has the bits of each common word, and the words that are known about a user.
type dictionary struct {
	common map[string]float64
	known  map[string]bool
}

// bits returns how many bits a word has. ok is false if it is not in the dictionary.
func (d dictionary) bits(word string) (bits float64, ok bool) {
	if d.known[word] {
		return 0, true
	}
	bits, ok = d.common[word]
	return bits, ok
}

// partsOf returns the known words and their parts, which an attacker tries first.
func partsOf(known []string) map[string]bool {
	words := map[string]bool{}
	for _, k := range known {
		for _, w := range slices.Concat(strings.FieldsFunc(k, notLetter), strings.FieldsFunc(k, notAlphanumeric), []string{k}) {
			if len(w) >= 3 {
				words[strings.ToLower(w)] = true
			}
		}
	}
	return words
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

func notAlphanumeric(r rune) bool { return notLetter(r) && !unicode.IsDigit(r) }

// lists has what commonWords returned, until the collector takes it: 10 MB are too much for a server
// that seldom needs them, and 30 ms for each of many new users.
var lists sync.Pool

// commonWords returns the bits for each word, from its rank in the lists.
func commonWords() (map[string]float64, error) {
	if words, ok := lists.Get().(map[string]float64); ok {
		return words, nil
	}
	words := make(map[string]float64, 100_000)
	for _, name := range []string{"Passwords", "English", "FemaleNames", "MaleNames", "Surnames"} {
		var list struct{ List []string }
		text, err := data.Asset("data/" + name + ".json")
		if err == nil {
			err = json.Unmarshal(text, &list)
		}
		if err != nil {
			return nil, fmt.Errorf("secret: read common words %s: %w", name, err)
		}
		for i, w := range list.List {
			bits := math.Log2(float64(i + 1))
			if known, ok := words[w]; !ok || bits < known {
				words[w] = bits
			}
		}
	}
	return words, nil
}

// longestWord is longer than any word in the lists, in characters.
const longestWord = 32

// guessBits returns the bits of the cheapest composition of a password. cost[j] is the cost of its
// first j characters.
func guessBits(words dictionary, password string) float64 {
	raw := []rune(password)
	raw = raw[:min(len(raw), judgedLength)]
	lower := []rune(strings.ToLower(string(raw)))
	if len(lower) != len(raw) { // some lower-case forms have several characters
		lower = raw
	}
	cost := make([]float64, len(raw)+1)
	for j := 1; j <= len(raw); j++ {
		cost[j] = cost[j-1] + singleBits(raw[j-1])
		for i := max(0, j-longestWord); i < j; i++ {
			if bits, ok := partBits(words, raw, lower, i, j); ok {
				cost[j] = min(cost[j], cost[i]+bits)
			}
		}
	}
	return cost[len(raw)]
}

// singleBits returns the bits of a single character.
func singleBits(r rune) float64 {
	switch {
	case r >= '0' && r <= '9':
		return math.Log2(10)
	case r >= 'a' && r <= 'z':
		return math.Log2(26)
	case r < 0x80:
		return math.Log2(95)
	}
	return math.Log2(1000)
}

// partBits returns the bits of a part of the password as a whole. ok is false if the part is not a
// common pattern.
func partBits(words dictionary, raw, lower []rune, i, j int) (least float64, ok bool) {
	least = math.Inf(1)
	part, n := string(lower[i:j]), j-i
	if i >= n && string(lower[i-n:i]) == part { // repeats the characters before it
		least = 1
	}
	if n >= 3 && inRow(part) {
		least = min(least, 3+math.Log2(float64(n)))
	}
	if n == 4 && (strings.HasPrefix(part, "19") || strings.HasPrefix(part, "20")) { // a year
		least = min(least, math.Log2(200))
	}
	capitals := 0.0
	if part != string(raw[i:j]) {
		capitals = 1
	}
	for k, substitutes := range substitutions {
		word := part
		if substitutes != nil {
			word = substitutes.Replace(part)
		}
		if bits, common := words.bits(word); common && (k == 0 || word != part) {
			least = min(least, bits+capitals+float64(min(k, 1)))
		}
	}
	return least, !math.IsInf(least, 1)
}

// substitutions replace signs by similar letters. The first entry means no substitution.
var substitutions = []*strings.Replacer{
	nil,
	strings.NewReplacer("4", "a", "@", "a", "8", "b", "3", "e", "6", "g", "1", "i", "!", "i", "0", "o", "5", "s", "$", "s", "7", "t", "+", "t"),
	strings.NewReplacer("4", "a", "@", "a", "8", "b", "3", "e", "9", "g", "1", "l", "|", "l", "0", "o", "5", "s", "$", "s", "7", "t", "2", "z"),
}

// rows are the alphabet, the digits, and the rows and columns of keyboards.
var rows = []string{
	"abcdefghijklmnopqrstuvwxyz", "01234567890", "qwertyuiop", "qwertzuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm", "azertyuiop",
	"1qaz2wsx3edc4rfv5tgb6yhn7ujm", "!@#$%^&*()",
}

// inRow reports whether the part is a piece of a row, in either direction.
func inRow(part string) bool {
	for _, row := range rows {
		if strings.Contains(row, part) || strings.Contains(row, reversed(part)) {
			return true
		}
	}
	return false
}

func reversed(s string) string {
	runes := []rune(s)
	out := make([]rune, 0, len(runes))
	for i := len(runes) - 1; i >= 0; i-- {
		out = append(out, runes[i])
	}
	return string(out)
}
