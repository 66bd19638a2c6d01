package tokenrequest

import (
	"bytes"
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
	if holdsForm(body) {
		return refuse("The body is JSON with a form in it.")
	}
	return eachField("The body", body, func(text string, value []byte) error {
		n, err := findName([]byte(text))
		if err != nil || n == unjudged {
			return err
		}
		decoded, ok := jsonText(value)
		if !ok {
			return refuse("The parameter " + nameTexts[n] + " is not a JSON string.")
		}
		return p.set(n, decoded)
	})
}

// holdsForm reports whether a server that parses every body as a form would find a client or a
// grant in it. It ignores other judged parameters, because they may be in the query of a
// redirect_uri.
func holdsForm(body []byte) bool {
	_, rest, more := bytes.Cut(body, []byte("&"))
	for more {
		var pair []byte
		pair, rest, more = bytes.Cut(rest, []byte("&"))
		name, _, isPair := bytes.Cut(pair, []byte("="))
		if !isPair {
			continue
		}
		text, err := url.QueryUnescape(string(name))
		if err != nil {
			continue // no server reads it as a judged name
		}
		switch n, err := findName([]byte(text)); {
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
		case slices.ContainsFunc(seen, func(other string) bool { return strings.EqualFold(other, string(name)) }):
			err = refuse(what + " has the same name twice.")
		case len(seen) == maxFields:
			err = refuse(what + " has more than 64 names.")
		default:
			seen = append(seen, string(name))
			err = each(seen[len(seen)-1], value)
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
func jsonText(value []byte) (text []byte, ok bool) {
	if value[0] != '"' {
		return nil, false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1], true
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil || strings.ContainsRune(s, utf8.RuneError) {
		return nil, false
	}
	return []byte(s), true
}
