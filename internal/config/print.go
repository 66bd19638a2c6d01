package config

import (
	"bytes"
	"encoding/json"
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

// secretName matches the names of options with secrets, in any case of letters.
var secretName = regexp.MustCompile(`(?i)passw|secret|token|credential|signature|bearer|jwt|licen[cs]e|api[-_]?key|access[-_]?key|^(key|sig|sas|auth|authorization|code|pass|pwd|session)$`)

// redactOptions replaces the values of options with secrets. It decodes names and values first, as
// the driver does.
func redactOptions(uri string) string {
	return uriOption.ReplaceAllStringFunc(uri, func(option string) string {
		part := uriOption.FindStringSubmatch(option)
		name := decoded(part[2])
		switch {
		case strings.EqualFold(name, "authMechanismProperties"):
			return part[1] + part[2] + "=" + redactProperties(part[3])
		case secretName.MatchString(name) && part[3] != "":
			return part[1] + part[2] + "=" + Redacted
		}
		return option
	})
}

// redactProperties replaces the secrets in a list of name:value, such as AWS_SESSION_TOKEN. Without
// secrets it returns the list unchanged.
func redactProperties(list string) string {
	found := false
	out := strings.Split(decoded(list), ",")
	for i, property := range out {
		name, _, ok := strings.Cut(property, ":")
		switch {
		case !ok && found: // the rest of a secret that contains a comma
			out[i] = Redacted
		case secretName.MatchString(name) && !strings.EqualFold(name, "TOKEN_RESOURCE"):
			out[i], found = name+":"+Redacted, true
		default:
			out[i] = url.QueryEscape(property)
		}
	}
	if !found {
		return list
	}
	return strings.Join(out, ",")
}

// decoded undoes the encoding of a query. Wrongly encoded text stays unchanged.
func decoded(text string) string {
	if out, err := url.QueryUnescape(text); err == nil {
		return out
	}
	return text
}

// WriteYAML writes the configuration in a form that can be read again. It replaces a password in
// the MongoDB URI, the secrets of the signing keys and the introspection secret by [Redacted], with
// a comment on where to give them instead.
func (c *Config) WriteYAML(w io.Writer) error {
	shown := c.redacted()
	var text bytes.Buffer
	if m := shown.Store.MongoDB; m != nil && m.URI != c.Store.MongoDB.URI && m.URIFile == "" {
		text.WriteString("# The password of store.mongodb.uri is not shown: set OAUTH_MONGODB_URI to override it.\n")
	}
	if shown.urls() != c.urls() {
		text.WriteString("# The credentials in URLs are not shown.\n")
	}
	if shown.Keys != c.Keys {
		text.WriteString("# The secret of keys is not shown: set OAUTH_KEYS_SECRET to override it.\n")
	}
	if shown.Gateway.Introspection.ClientSecret != c.Gateway.Introspection.ClientSecret {
		text.WriteString("# The secret of gateway.introspection is not shown: set OAUTH_INTROSPECTION_CLIENT_SECRET to override it.\n")
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
	shown := c.redacted()
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(shown)
}

// redacted returns a copy without the password and the secrets. It leaves out a URI that was read
// from a file, which is read from there again.
func (c *Config) redacted() Config {
	shown := *c
	shown.Keys.Secret = redacted(c.Keys.Secret)
	shown.Gateway.Introspection.ClientSecret = redacted(c.Gateway.Introspection.ClientSecret)
	for _, u := range []*string{&shown.Issuer, &shown.Tracing.Endpoint, &shown.Gateway.Upstream, &shown.Gateway.PublicURL, &shown.Gateway.Introspection.URL} {
		*u = RedactURI(*u)
	}
	switch m := c.Store.MongoDB; {
	case m == nil:
	case m.URIFile != "":
		shown.Store.MongoDB = &MongoDB{URIFile: m.URIFile, Database: m.Database}
	case RedactURI(m.URI) != m.URI:
		shown.Store.MongoDB = &MongoDB{URI: RedactURI(m.URI), Database: m.Database}
	}
	return shown
}

// urls returns the URLs of this server and of other servers.
func (c *Config) urls() [5]string {
	return [...]string{c.Issuer, c.Tracing.Endpoint, c.Gateway.Upstream, c.Gateway.PublicURL, c.Gateway.Introspection.URL}
}
