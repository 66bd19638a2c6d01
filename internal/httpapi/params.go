package httpapi

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"oauth-server/internal/limiter/oautherr"
)

// maxParams bounds the parameters of one request. An OAuth request needs less than a third of it.
const maxParams = 64

// params holds decoded form or query parameters in the order of the request. A request has only a
// few, so a linear scan is faster than a map.
type params struct {
	pairs    []param
	repeated []string // names that were sent more than once
}

type param struct{ name, value string }

// parseParams decodes application/x-www-form-urlencoded. It is stricter than net/url: every name
// and value must be valid UTF-8 without NUL. A parameter without a value counts as omitted (RFC
// 6749 3.1 and 3.2). If a parameter is repeated, only the first value is kept, and the name is
// recorded for the caller to check. Parameters that may be repeated are all kept.
func parseParams(raw string) (params, error) {
	p := params{pairs: make([]param, 0, 8)}
	for raw != "" {
		var piece string
		piece, raw, _ = strings.Cut(raw, "&")
		name, value, _ := strings.Cut(piece, "=")
		if value == "" {
			continue
		}
		if err := p.add(name, value); err != nil {
			return params{}, err
		}
	}
	return p, nil
}

func (p *params) add(rawName, rawValue string) error {
	if len(p.pairs)+len(p.repeated) == maxParams {
		return invalidRequest("There are more than %d parameters.", maxParams)
	}
	name, ok := decodeComponent(rawName)
	if !ok {
		return invalidRequest("The name of a parameter is not form-encoded UTF-8, or contains NUL.")
	}
	value, ok := decodeComponent(rawValue)
	if !ok {
		return invalidRequest("The value of %s is not form-encoded UTF-8, or contains NUL.", printable(name))
	}
	if limit := maxLength(name); len(value) > limit {
		return invalidRequest("The parameter %s is longer than %d bytes.", name, limit)
	}
	if p.has(name) && name != "resource" && name != "audience" { // RFC 8707 2 and RFC 8693 2.1 allow several
		p.repeated = append(p.repeated, name)
		return nil
	}
	p.pairs = append(p.pairs, param{name, value})
	return nil
}

// decodeComponent decodes form encoding: "+" is a space, "%XX" a byte.
func decodeComponent(s string) (string, bool) {
	if strings.ContainsAny(s, "%+") {
		var err error
		if s, err = url.QueryUnescape(s); err != nil {
			return "", false
		}
	}
	return s, isText(s)
}

// isText reports whether s is UTF-8 without NUL.
func isText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func (p *params) twice(name string) bool { return slices.Contains(p.repeated, name) }

// get returns the value, or an empty string if the parameter is missing.
func (p *params) get(name string) string {
	for i := range p.pairs {
		if p.pairs[i].name == name {
			return p.pairs[i].value
		}
	}
	return ""
}

func (p *params) has(name string) bool { return p.get(name) != "" }

// once returns invalid_request if any parameter was repeated (RFC 6749 3.2).
func (p *params) once() error {
	if len(p.repeated) > 0 {
		return invalidRequest("The parameter %s is repeated.", printable(p.repeated[0]))
	}
	return nil
}

// signedIn removes prompt=login and max_age after a sign-in has satisfied them. Otherwise the user
// would have to sign in again and again.
func (p *params) signedIn() {
	kept := p.pairs[:0]
	for _, kv := range p.pairs {
		switch kv.name {
		case "max_age":
			continue
		case "prompt":
			prompts := slices.DeleteFunc(strings.Fields(kv.value), func(v string) bool { return v == "login" })
			if kv.value = strings.Join(prompts, " "); kv.value == "" {
				continue
			}
		}
		kept = append(kept, kv)
	}
	p.pairs = kept
}

// encode encodes the parameters as application/x-www-form-urlencoded, in their order.
func (p *params) encode() string {
	var b strings.Builder
	for i, kv := range p.pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(kv.name))
		b.WriteByte('=')
		b.WriteString(url.QueryEscape(kv.value))
	}
	return b.String()
}

// maxLength bounds a value in bytes, so other packages never get huge values: passwords are hashed
// slowly, and names become keys.
func maxLength(name string) int {
	switch name {
	case "client_id", "username", "grant_type", "response_type", "response_mode",
		"code_challenge", "code_challenge_method", "code_verifier", "token_type_hint", "prompt", "max_age", "login_hint":
		return 256
	case "client_secret", "password", "code":
		return 1024
	case "redirect_uri":
		return 2048
	case "scope", "refresh_token":
		return 4096
	case "state":
		return 8192
	default:
		return maxBody
	}
}

// printable shortens a name from a request for a description and replaces characters that RFC 6749
// 5.2 does not allow there.
func printable(s string) string {
	const most = 40
	if len(s) > most {
		s = s[:most] + "..."
	}
	return oautherr.Describe(s)
}
