package early

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"oauth-server/internal/check"
)

const path = "/token"

// message returns a request with those fields, including the length of its body.
func message(fields, body string) string {
	return fmt.Sprintf("POST /token HTTP/1.1\r\nHost: x\r\n%sContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s",
		fields, len(body), body)
}

const (
	basic = "Authorization: Basic c2hvcDpzZWNyZXQ=\r\n" // shop:secret
	grant = "grant_type=client_credentials"
	creds = "client_id=shop&client_secret=secret&"
)

func TestParse(t *testing.T) {
	shop := Request{ClientID: "shop", Secret: "secret", Grant: "client_credentials"}
	refresh := Request{ClientID: "shop", Secret: "secret", Grant: "refresh_token", RefreshToken: "a-b_c"}
	for name, tc := range map[string]struct {
		message string
		want    Request
	}{
		"basic":                {message(basic, grant), shop},
		"body":                 {message("", creds+grant), shop},
		"both, of one client":  {message(basic, "client_id=shop&"+grant), shop},
		"escapes elsewhere":    {message(basic, "scope=a+b%20c;&"+grant), shop},
		"other fields":         {message(basic+"Accept: */*\r\nUser-Agent: a\r\nconnection: Keep-Alive\r\n", grant), shop},
		"fields in any case":   {message("aUTHORIZATION: bASIC c2hvcDpzZWNyZXQ=\r\n", grant), shop},
		"refresh":              {message(basic, "grant_type=refresh_token&refresh_token=a-b_c"), refresh},
		"code":                 {message(basic, "grant_type=authorization_code&code=c"), Request{ClientID: "shop", Secret: "secret", Grant: "authorization_code", Code: "c"}},
		"no client":            {message("", grant), Request{}},
		"no secret":            {message("", "client_id=shop&"+grant), Request{}},
		"two clients":          {message(basic, "client_id=other&"+grant), Request{}},
		"two secrets":          {message(basic, "client_secret=secret&"+grant), Request{}},
		"no grant":             {message(basic, "scope=a"), Request{}},
		"twice":                {message(basic, grant+"&"+grant), Request{}},
		"twice, once empty":    {message(basic, grant+"&grant_type="), Request{}},
		"escaped value":        {message("", "client_id=sh%6fp&client_secret=secret&"+grant), Request{}},
		"escaped name":         {message("", "client%5fid=shop&client_secret=secret&"+grant), Request{}},
		"escaped basic":        {message("Authorization: Basic c2glNmZwOnNlY3JldA==\r\n", grant), Request{}},
		"two authorizations":   {message(basic+basic, grant), Request{}},
		"bearer":               {message("Authorization: Bearer a\r\n", creds+grant), Request{}},
		"from a script":        {message(basic+"Origin: https://app.example\r\n", grant), Request{}}, // whose answer has fields for it
		"expects to continue":  {message(basic+"Expect: 100-continue\r\n", grant), Request{}},
		"closes":               {message(basic+"Connection: close\r\n", grant), Request{}},
		"chunked":              {message(basic+"Transfer-Encoding: chunked\r\n", grant), Request{}},
		"two lengths":          {message(basic+"Content-Length: 29\r\n", grant), Request{}},
		"a folded field":       {message(basic+"X: a\r\n Authorization: Basic b\r\n", grant), Request{}},
		"a space in a name":    {message(basic+"X : a\r\n", grant), Request{}},
		"a bare line feed":     {message(basic+"X: a\nY: b\r\n", grant), Request{}},
		"a carriage return":    {message(basic+"X: a\rY: b\r\n", grant), Request{}},
		"no text":              {message(basic+"X: a\x00\r\n", grant), Request{}},
		"no name of a field":   {message(basic+"Transfer-Encoding\x80: chunked\r\n", grant), Request{}},
		"two hosts":            {message(basic+"Host: y\r\n", grant), Request{}},
		"no host":              {strings.Replace(message(basic, grant), "Host: x\r\n", "", 1), Request{}},
		"not a host":           {strings.Replace(message(basic, grant), "Host: x", "Host: x y", 1), Request{}},
		"a host with a port":   {strings.Replace(message(basic, grant), "Host: x", "Host: [2001:db8::1]:80", 1), shop},
		"a length with a sign": {strings.Replace(message(basic, grant), "Length: ", "Length: +", 1), Request{}},
		"no colon":             {message(basic+"X\r\n", grant), Request{}},
		"JSON":                 {strings.Replace(message(basic, grant), "x-www-form-urlencoded", "json", 1), Request{}},
		"a charset":            {strings.Replace(message(basic, grant), "urlencoded", "urlencoded; charset=utf-8", 1), Request{}},
		"more than it":         {message(basic, grant) + "P", Request{}},
		"less than it":         {strings.TrimSuffix(message(basic, grant), "s"), Request{}},
		"another path":         {strings.Replace(message(basic, grant), "/token", "/tokem", 1), Request{}},
		"a query":              {strings.Replace(message(basic, grant), "/token", "/token?", 1), Request{}},
		"another method":       {strings.Replace(message(basic, grant), "POST", "GET", 1), Request{}},
		"HTTP/1.0":             {strings.Replace(message(basic, grant), "1.1", "1.0", 1), Request{}},
		"a header without end": {"POST /token HTTP/1.1\r\nHost: x\r\n", Request{}},
		"TLS":                  {"\x16\x03\x01\x02\x00\x01", Request{}},
		"nothing":              {"", Request{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parse([]byte(tc.message), path)
			check.Equal(t, "taken", ok, tc.want != Request{})
			if ok {
				check.Equal(t, "request", got, tc.want)
			}
		})
	}
}

// FuzzParse checks that net/http reads an accepted request in the same way, and that the data
// contains nothing else.
func FuzzParse(f *testing.F) {
	for _, fields := range []string{"", basic, basic + "Connection: keep-alive\r\n", "X: \r\n", "Content-Length: 1\r\n", "\r\n", "A: b\nC: d\r\n"} {
		for _, body := range []string{grant, creds + grant, "grant_type=refresh_token&refresh_token=a", "a;b=c&" + grant, "&&" + grant + "&x=%zz"} {
			f.Add([]byte(message(fields, body)))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := parse(b, path)
		if !ok {
			return
		}
		in := bufio.NewReader(bytes.NewReader(b))
		r, err := http.ReadRequest(in)
		if err != nil || r.Host == "" {
			t.Fatalf("net/http refuses it: %v", err)
		}
		if r.Method != http.MethodPost || r.URL.Path != path || r.Close {
			t.Fatalf("%s %s, close %t", r.Method, r.URL, r.Close)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || in.Buffered() > 0 {
			t.Fatalf("there is something behind it, or %v", err)
		}
		want := Request{}
		for pair := range strings.SplitSeq(string(body), "&") {
			name, value, _ := strings.Cut(pair, "=")
			switch name {
			case "client_id":
				want.ClientID += value
			case "client_secret":
				want.Secret += value
			case "grant_type":
				want.Grant += value
			case "refresh_token":
				want.RefreshToken += value
			case "code":
				want.Code += value
			}
		}
		if id, secret, basic := r.BasicAuth(); basic {
			if want.ClientID != "" && want.ClientID != id || want.Secret != "" {
				t.Fatal("it names two clients")
			}
			want.ClientID, want.Secret = id, secret
		}
		if got != want {
			t.Errorf("%+v, net/http reads %+v", got, want)
		}
	})
}
