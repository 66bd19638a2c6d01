package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"oauth-server/internal/strict"
)

// Redacted replaces a password.
const Redacted = "REDACTED"

// RedactURI replaces the secrets in a connection string, or in the URL of another server. The
// string may be malformed: a string with @ or / in the password is likely to end up in an error
// message.
func RedactURI(uri string) string {
	uri = redactOptions(uri)
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	end := strings.LastIndex(rest, "@")
	user, _, hasPassword := strings.Cut(rest[:max(0, end)], ":")
	switch isWeb := strings.HasPrefix(strings.ToLower(scheme), "http"); {
	case end >= 0 && isWeb: // the user may be a token
		return scheme + "://" + Redacted + rest[end:]
	case !hasPassword:
		return uri
	}
	return scheme + "://" + user + ":" + Redacted + rest[end:]
}

// uriOption is an option of a connection string. The driver accepts both separators.
var uriOption = regexp.MustCompile(`([?&;])([^?&;=]*)=([^&;]*)`)

// secretName matches the names of options with secrets, in any case of letters. The properties of an
// authentication mechanism may contain the token of a session.
var secretName = regexp.MustCompile(`(?i)passw|secret|token|credential|signature|bearer|jwt|licen[cs]e|api[-_]?key|access[-_]?key|^(authMechanismProperties|key|sig|sas|auth|authorization|code|pass|pwd|session)$`)

// redactOptions replaces the values of options with secrets. It decodes names first, as the driver
// does.
func redactOptions(uri string) string {
	return uriOption.ReplaceAllStringFunc(uri, func(option string) string {
		part := uriOption.FindStringSubmatch(option)
		if secretName.MatchString(decoded(part[2])) && part[3] != "" {
			return part[1] + part[2] + "=" + Redacted
		}
		return option
	})
}

// decoded undoes the encoding of a query. Wrongly encoded text stays unchanged.
func decoded(text string) string {
	if out, err := url.QueryUnescape(text); err == nil {
		return out
	}
	return text
}

// WriteYAML writes the configuration in a form that can be read again. It replaces secrets, and
// passwords in URLs, by [Redacted], with a comment on where to give them instead.
func (c *Config) WriteYAML(w io.Writer) error {
	shown, hidden := c.redacted()
	var text bytes.Buffer
	for _, o := range hidden {
		fmt.Fprintf(&text, "# The secret in %s is not shown: set %s to override it.\n", o.Path, o.Env())
	}
	if err := strict.WriteYAML(&text, shown); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}

// WriteJSON writes the same as [Config.WriteYAML], as JSON. It can be read again too,
// because JSON is YAML.
func (c *Config) WriteJSON(w io.Writer) error {
	shown, _ := c.redacted()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(shown)
}

// redacted returns a copy without the secrets of options with a redact tag, and the options in which
// it found one. It leaves out a URI that was read from a file, which is read from there again.
func (c *Config) redacted() (shown Config, hidden []Option) {
	shown = *c
	if c.Store.MongoDB != nil {
		m := *c.Store.MongoDB
		if m.URIFile != "" {
			m.URI = ""
		}
		shown.Store.MongoDB = &m
	}
	for _, o := range options {
		if o.redact == "" || o.IsStore() && shown.Store.MongoDB == nil {
			continue
		}
		v, err := strict.At(&shown, o.Path)
		if err != nil || v.String() == "" {
			continue
		}
		safe := Redacted
		if o.redact == "password" {
			safe = RedactURI(v.String())
		}
		if safe != v.String() {
			v.SetString(safe)
			hidden = append(hidden, o)
		}
	}
	return shown, hidden
}
