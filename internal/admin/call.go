package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"
)

// call is one request on its way through the server: echo's context and what is found
// out about the request while it is answered.
type call struct {
	echo.Context
	started time.Time
	caller  *caller // nil until the token is verified
	query   url.Values
	outcome string        // type of the problem that was answered, for the log; empty if none
	age     time.Duration // of what is answered, if it is not known to be the newest
}

// handler answers a call. It returns an error instead of writing one.
type handler func(*call) error

// echo adapts the handler to echo's router; around has made the call.
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

// write sends an answer. A failure means that the client has gone; the access log has
// the request.
func (c *call) write(media string, status int, body []byte) {
	c.Response().Header().Set("Content-Type", media)
	c.Response().WriteHeader(status)
	_, _ = c.Response().Write(body)
}
