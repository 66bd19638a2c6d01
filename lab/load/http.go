package load

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Request returns the bytes of a request with a form: as a client with its secret, or without authentication if the secret is
// empty.
func Request(address, path, client, secret, form string) []byte {
	by := ""
	if secret != "" {
		by = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(client+":"+secret)) + "\r\n"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		path, address, by, len(form), form)
}

// RefreshToken returns the refresh token in the body of an answer, or "". It needs no escapes in a form.
func RefreshToken(body []byte) string {
	_, rest, _ := bytes.Cut(body, []byte(`"refresh_token":"`))
	token, _, ended := bytes.Cut(rest, []byte{'"'})
	if !ended {
		return ""
	}
	return string(token)
}

var (
	endOfHeader = []byte("\r\n\r\n")
	sizeField   = []byte("\r\nContent-Length: ")
	closeField  = []byte("\r\nConnection: close")

	errAnswer = errors.New("not an answer that the load generator can read")
)

// parse returns the status of an HTTP/1.1 answer, whether it is the last one of its connection, and its body. The status is
// 0 until all of the answer is there.
func parse(answer []byte) (status int, last bool, body []byte, err error) {
	end := bytes.Index(answer, endOfHeader)
	if end < 0 {
		return 0, false, nil, nil
	}
	header := answer[:end+2]
	_, rest, found := bytes.Cut(header, sizeField)
	if !found || len(header) < len("HTTP/1.1 200") {
		return 0, false, nil, fmt.Errorf("%w: %q", errAnswer, header)
	}
	digits, _, _ := bytes.Cut(rest, endOfHeader[:2])
	size, err := strconv.Atoi(string(digits))
	if err != nil {
		return 0, false, nil, fmt.Errorf("%w: %q", errAnswer, header)
	}
	status, err = strconv.Atoi(string(header[9:12]))
	body = answer[end+len(endOfHeader):]
	if err != nil || len(body) < size {
		return 0, false, nil, err
	}
	return status, bytes.Contains(header, closeField), body[:size], nil
}

// Answer is an answer to [Post].
type Answer struct {
	Status       int         `json:"-"`
	Header       http.Header `json:"-"`
	Body         []byte      `json:"-"`
	AccessToken  string      `json:"access_token"`
	RefreshToken string      `json:"refresh_token"`
	Error        string      `json:"error"`
}

// maxAnswer is the number of bytes of an answer that are read.
const maxAnswer = 1 << 20

// Post sends a form by an HTTP client: as a client of the server with its secret, or with its client_id only if the
// secret is empty. An answer that is no JSON has a status all the same.
func Post(ctx context.Context, by *http.Client, to, client, secret string, form url.Values) (Answer, error) {
	if secret == "" {
		form.Set("client_id", client)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(form.Encode()))
	if err != nil {
		return Answer{}, err
	}
	if secret != "" {
		req.SetBasicAuth(url.QueryEscape(client), url.QueryEscape(secret))
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return Do(by, req)
}

// Do sends a request and reads the answer.
func Do(by *http.Client, req *http.Request) (a Answer, err error) {
	res, err := by.Do(req) //nolint:gosec // G704: what the caller asks
	if err != nil {
		return a, err
	}
	a.Status, a.Header = res.StatusCode, res.Header
	a.Body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	_ = json.Unmarshal(a.Body, &a)
	return a, errors.Join(err, res.Body.Close())
}
