package tokenrequest_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/tokenrequest"
)

func TestMayAsk(t *testing.T) {
	for name, tc := range map[string]struct {
		query, body string
		field, is   string // of the header
		want        bool
	}{
		"a form":               {body: "a=b&grant_type=password", want: true},
		"the query":            {query: "grant_type=password", want: true},
		"upper case":           {body: "Grant_Type=password", want: true},
		"percent-encoded":      {body: "%67r%41nt%5Ftype=password", want: true},
		"as PHP reads it":      {body: "+grant+type[=password", want: true},
		"JSON":                 {body: `{"grant_type":"password"}`, want: true},
		"JSON with escapes":    {body: `{"g\u0072ant\u005Ftype":"password"}`, want: true},
		"a quoted string":      {body: `name="gr\ant_type"`, want: true},
		"UTF-16":               {body: "\x00g\x00r\x00a\x00n\x00t\x00_\x00t\x00y\x00p\x00e\x00\"", want: true},
		"as ASP.NET reads it":  {body: "grant%u005Ftype=password", want: true},
		"a name in pieces":     {body: `form-data; name*0="grant_"; name*1="type"`, want: true},
		"an encoded word":      {body: `form-data; name="=?utf-8?Q?grant=5Ftype?="`, want: true},
		"another, in base64":   {body: "form-data; name==?UTF-8?B?Z3JhbnRfdHlwZQ?=", want: true},
		"a name of a file":     {body: `form-data; name="a"; filename*=UTF-8''b; filename*0="c"`},
		"behind half of it":    {body: "grant_grant_type=x", want: true},
		"an array":             {body: "grant_type[]=x", want: true},
		"compressed":           {body: "x", field: "Content-Encoding", is: "br", want: true},
		"another charset":      {body: "x", field: "Content-Type", is: `a/b; Charset = "IBM037"`, want: true},
		"one behind another":   {body: "x", field: "Content-Type", is: "a/b; charset=utf-8; charset=utf-16", want: true},
		"identity":             {body: "x", field: "Content-Encoding", is: "identity"},
		"UTF-8":                {body: "x", field: "Content-Type", is: `a/b; charset="UTF-8"`},
		"compressed, no body":  {field: "Content-Encoding", is: "gzip"},
		"nothing":              {},
		"a longer name":        {body: `{"grant_types":["password"],"grant_type_x":1}`},
		"without a value":      {body: "grant_type"},
		"something else":       {body: "token=granttype&gran=x%"},
		"a broken escape":      {body: `\u00`},
		"a shorter one":        {body: "%6"},
		"the beginning of one": {body: "grant_typ\x00"},
	} {
		got := tokenrequest.MayAsk(http.Header{tc.field: {tc.is}}, tc.query, []byte(tc.body))
		check.Equal(t, name, got, tc.want)
	}
}

// FuzzMayAsk checks that MayAsk is true for every request with a grant, and that a body that asks
// is not read to its end, however it is split.
func FuzzMayAsk(f *testing.F) {
	for _, seed := range []string{"a=b&grant_type=password", `{"g\u0072ant_type":"password"}`, "%67rant%5Ftype=x", "\x00g\x00r\x00a", "grant_types=x"} {
		f.Add([]byte(seed), 3)
	}
	late := errors.New("late")
	f.Fuzz(func(t *testing.T, body []byte, cut int) {
		may := tokenrequest.MayAsk(nil, "", body)
		for _, kind := range []string{"application/x-www-form-urlencoded", "application/json"} {
			if r, _, err := tokenrequest.Read(http.Header{"Content-Type": {kind}}, "", body); err == nil && r.Grant != "" && !may {
				t.Fatalf("%q has the grant %q and does not ask", body, r.Grant)
			}
		}
		if cut < 0 || cut > len(body) || bytes.IndexByte(body, 0) >= 0 || tokenrequest.MayAsk(nil, "", body[:cut]) {
			return
		}
		rest := tokenrequest.Watch(body[:cut], iotest.OneByteReader(bytes.NewReader(body[cut:])), late)
		if _, err := io.Copy(io.Discard, rest); errors.Is(err, late) != may {
			t.Fatalf("%q, cut at %d: %v", body, cut, err)
		}
	})
}
