package admin

import (
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"oauth-server/internal/adminapi"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/strict"
	"oauth-server/internal/username"
)

// maxBody bounds a request body, in bytes. The longest policy is far shorter.
const maxBody = 64 << 10

// flag reads a boolean parameter.
func (c *call) flag(name string) (bool, error) {
	switch v := c.query.Get(name); v {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, invalidField(name, "must be true or false, not %q", v)
	}
}

// number reads a parameter from 1 to high. otherwise is the default.
func (c *call) number(name string, high, otherwise int64) (int64, error) {
	v := c.query.Get(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 || n > high {
		return 0, invalidField(name, "must be a whole number from 1 to %d, not %q", high, v)
	}
	return n, nil
}

// reason reads the reason for a change, for the audit trail.
func (c *call) reason() (string, error) {
	reason := c.query.Get("reason")
	if err := clientcfg.ValidateNote(reason); err != nil {
		return "", invalidField("reason", "%v", err)
	}
	return reason, nil
}

// clientID returns the client ID in the path. The router leaves it escaped if the path needs
// escaping, for example for a slash.
func (c *call) clientID() (string, error) { return c.name("client_id", clientcfg.MaxIDLength) }

func (c *call) username() (string, error) { return c.name("username", username.MaxLength) }

// name returns a path parameter of at most most bytes.
func (c *call) name(param string, most int) (string, error) {
	name, err := c.Param(param), error(nil)
	if c.Request().URL.RawPath != "" {
		name, err = url.PathUnescape(name)
	}
	if len(name) > most {
		return "", notFound("no %s has more than %d characters", param, most)
	}
	if err != nil || name == "" {
		return "", notFound("no %s is like that", param)
	}
	return name, nil
}

// body reads one JSON value with one of the media types.
func (c *call) body(types ...string) (*strict.Value, error) { return c.bodyOf(maxBody, types...) }

// bodyOf is like body, with another size limit.
func (c *call) bodyOf(most int64, types ...string) (*strict.Value, error) {
	r := c.Request()
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, media) {
		p := problem(http.StatusUnsupportedMediaType, typeMedia, "Unsupported media type",
			"send Content-Type: %s", strings.Join(types, " or "))
		if r.Method == http.MethodPatch {
			c.Response().Header().Set("Accept-Patch", strings.Join(types, ", "))
		}
		return nil, p
	}
	b, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, most))
	if err != nil {
		return nil, problem(http.StatusRequestEntityTooLarge, typeTooLarge, "Body too large or cut off",
			"at most %d bytes are read", most)
	}
	v, err := strict.ParseJSON(b)
	if err != nil {
		p := malformed("the body cannot be read as JSON: %v", err)
		p.Errors = []adminapi.FieldProblem{{Detail: err.Error()}}
		return nil, p
	}
	return v, nil
}
