package config

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"

	"oauth-server/internal/strict"
)

// Redacted stands where a password was.
const Redacted = "REDACTED"

// secretOptions are the options of a connection string that hold a secret.
var secretOptions = regexp.MustCompile(`(?i)(tlsCertificateKeyFilePassword=|AWS_SESSION_TOKEN:)[^&,]*`)

// RedactURI hides what is secret in a connection string. It does not rely on
// the string being well formed: a password with a stray @ or / is what ends
// up in an error message.
func RedactURI(uri string) string {
	uri = secretOptions.ReplaceAllString(uri, "${1}"+Redacted)
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	end := strings.LastIndex(rest, "@")
	user, _, hasPassword := strings.Cut(rest[:max(0, end)], ":")
	if !hasPassword {
		return uri
	}
	return scheme + "://" + user + ":" + Redacted + rest[end:]
}

// WriteYAML writes the effective configuration so that it can be read again. A
// password in the MongoDB URI is replaced by [Redacted], with a comment that
// says where to give it instead.
func (c *Config) WriteYAML(w io.Writer) error {
	shown, redacted := c.redacted()
	var text bytes.Buffer
	if redacted {
		text.WriteString("# The password of store.mongodb.uri is not shown: set OAUTH_MONGODB_URI to override it.\n")
	}
	if err := strict.WriteYAML(&text, shown); err != nil {
		return err
	}
	_, err := w.Write(text.Bytes())
	return err
}

// WriteJSON is [Config.WriteYAML] for scripts: the same fields, which can be
// read again too, because JSON is YAML.
func (c *Config) WriteJSON(w io.Writer) error {
	shown, _ := c.redacted()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(shown)
}

// redacted is a copy of c to show, and whether a password was hidden in it.
func (c *Config) redacted() (shown Config, hidden bool) {
	shown = *c
	m := c.Store.MongoDB
	if m == nil || RedactURI(m.URI) == m.URI {
		return shown, false
	}
	shown.Store.MongoDB = &MongoDB{URI: RedactURI(m.URI), Database: m.Database}
	return shown, true
}
