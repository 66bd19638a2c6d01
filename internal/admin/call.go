package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"
)

// call is one request: echo's context, and values determined while the request is served.
type call struct {
	echo.Context
	started time.Time
	caller  *caller // nil until the token is verified
	query   url.Values
	outcome string        // type of the problem in the response, for the log; empty without a problem
	age     time.Duration // of the data in the response, if they may be out of date
}

// handler serves a call. It returns errors instead of writing them.
type handler func(*call) error

// echo adapts the handler to echo's router. around has made the call.
func (h handler) echo(c echo.Context) error {
	return h(c.(*call)) //nolint:forcetypeassert // around passes nothing else
}

// answer sends v as JSON.
func (c *call) answer(v any) error { return c.answerStatus(http.StatusOK, v) }

func (c *call) answerStatus(status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("admin: encode the answer: %w", err)
	}
	c.write("application/json", status, body)
	return nil
}

// write sends a response. A write error means that the client has disconnected, which the access
// log shows.
func (c *call) write(media string, status int, body []byte) {
	c.Response().Header().Set("Content-Type", media)
	c.Response().WriteHeader(status)
	_, _ = c.Response().Write(body)
}
