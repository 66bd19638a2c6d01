package tokenrequest

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"oauth-server/internal/gateway/subject"
)

// maxFields bounds the fields of a JSON object.
const maxFields = 64

// readJSON parses a JSON object. No OAuth specification defines JSON requests, but several servers
// accept them.
func (p *params) readJSON(body []byte) error {
	if holdsForm(string(body)) {
		return refuse("The JSON body contains a form.")
	}
	return eachField("The body", body, func(text string, value []byte) error {
		n, err := findName(text)
		if err != nil {
			return err
		}
		decoded, ok := jsonText(value)
		switch {
		case n == other && text == "password" && ok:
			p.passwords = []string{decoded}
		case n == other:
		case !ok:
			return refuse("The parameter " + nameTexts[n] + " is not a JSON string.")
		default:
			return p.set(n, decoded)
		}
		return nil
	})
}

// holdsForm reports whether a server that parses every body as a form would find a client or a
// grant in it. It ignores other checked parameters, because they may be in the query of a
// redirect_uri.
func holdsForm(body string) bool {
	for _, pair := range strings.Split(body, "&")[1:] {
		text, _, isPair := strings.Cut(pair, "=")
		text, err := url.QueryUnescape(text)
		if !isPair || err != nil {
			continue // no server reads it as a checked name
		}
		switch n, err := findName(text); {
		case err != nil, n == client, n == grantType, n == assertion:
			return true
		}
	}
	return false
}

// eachField calls each for every field of a JSON object, with the value as sent. what names the
// object in errors. Two names that differ only in letter case are an error, because encoding/json
// and .NET treat them as the same name.
func eachField(what string, object []byte, each func(name string, value []byte) error) (err error) {
	var seen []string
	isObject := subject.Members(object, func(rawName, value []byte) bool {
		name, ok := jsonText(rawName)
		switch {
		case !ok || len(name) > maxName:
			err = refuse(what + " has a name that is not text, or longer than 255 bytes.")
		case slices.ContainsFunc(seen, func(before string) bool { return strings.EqualFold(before, name) }):
			err = refuse(what + " has the same name twice.")
		case len(seen) == maxFields:
			err = refuse(what + " has more than 64 names.")
		default:
			seen = append(seen, name)
			err = each(name, value)
		}
		return err == nil
	})
	if !isObject || !utf8.Valid(object) {
		return refuse(what + " is not a valid JSON object.")
	}
	return err
}

// jsonText decodes a JSON string. It reports false if the value is not a string, or contains an
// unpaired surrogate, which servers decode differently.
func jsonText(value []byte) (text string, ok bool) {
	if value[0] != '"' {
		return "", false
	}
	err := json.Unmarshal(value, &text)
	return text, err == nil && !strings.ContainsRune(text, utf8.RuneError)
}
