package deploycheck

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"oauth-server/internal/check"
)

// findNJS skips the test where nginx has no JavaScript. CI has to have it.
func findNJS(t *testing.T) string {
	t.Helper()
	findNginx(t)
	const module = "/usr/lib/nginx/modules/ngx_http_js_module.so"
	if _, err := os.Stat(module); err == nil {
		return module
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("nginx has no njs on this machine: apt-get install libnginx-mod-http-js")
	}
	t.Skip("nginx has no njs on this machine: deploy/nginx/judge.conf is not tried")
	return ""
}

// tokenEndpoint is one that keeps what it gets, and answers with a token, with 401 if the body has bad in it, or not if it has
// breaks in it.
type tokenEndpoint struct {
	*httptest.Server
	mu   sync.Mutex
	got  []arrival
	last *http.Request
}

// arrival is a request as it arrived.
type arrival struct{ method, uri, body, authorization, contentType, forwardedFor string }

func startTokenEndpoint(t *testing.T) *tokenEndpoint {
	t.Helper()
	e := &tokenEndpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the body at the token endpoint: %v", err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.last = r
		e.got = append(e.got, arrival{
			r.Method, r.RequestURI, string(body),
			r.Header.Get("Authorization"), strings.Join(r.Header["Content-Type"], "|"), r.Header.Get("X-Forwarded-For"),
		})
		if strings.Contains(string(body), "breaks") {
			panic(http.ErrAbortHandler)
		}
		if strings.Contains(string(body), "bad") {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, `{"access_token":"a token"}`) // if it breaks off, nginx says so
	}))
	t.Cleanup(e.Close)
	return e
}

// take returns what has arrived since it was called last.
func (e *tokenEndpoint) take() []arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.got
	e.got = nil
	return got
}

// throughNJS is nginx with deploy/nginx/judge.conf between a judge and a token endpoint.
type throughNJS struct {
	t         *testing.T
	idp       *tokenEndpoint
	url       string
	client    *http.Client
	stopJudge func()
}

func startThroughNJS(t *testing.T) *throughNJS {
	t.Helper()
	module := findNJS(t) // before the server is built
	n := &throughNJS{t: t, idp: startTokenEndpoint(t), client: clientAt(t, "127.0.0.1")}
	var judge string
	judge, n.stopJudge = startJudge(t)
	script, err := filepath.Abs(filepath.Join(root, "deploy/nginx/judge.js"))
	check.OK(t, err)
	text := "load_module " + module + ";\nevents {}\nhttp {\n" + read(t, "deploy/nginx/judge.conf") + "}\n"
	more := map[string]string{"from judge.js;": "from " + script + ";"}
	n.url = "http://" + runNginxThatAsks(t, text, judge, n.idp.Listener.Addr().String(), more)
	return n
}

const formType = "application/x-www-form-urlencoded"

// answered is the answer to a request.
type answered struct {
	status int
	header http.Header
	body   string
}

// ask sends a request and returns the answer.
func (n *throughNJS) ask(method, path string, header http.Header, body io.Reader) answered {
	n.t.Helper()
	got, err := n.do(method, path, header, body)
	check.OK(n.t, err)
	return got
}

func (n *throughNJS) do(method, path string, header http.Header, body io.Reader) (got answered, err error) {
	req, err := http.NewRequestWithContext(n.t.Context(), method, n.url+path, body)
	if err != nil {
		return answered{}, err
	}
	req.Header = header
	res, err := n.client.Do(req)
	if err != nil {
		return answered{}, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	return answered{res.StatusCode, res.Header, string(text)}, err
}

// token sends a token request.
func (n *throughNJS) token(form string) answered {
	n.t.Helper()
	return n.ask(http.MethodPost, "/oauth2/token", http.Header{"Content-Type": {formType}}, strings.NewReader(form))
}

// wantLimited checks a 429 of the judge, and that the token endpoint got nothing of the request.
func (n *throughNJS) wantLimited(got answered, policy string) {
	n.t.Helper()
	check.Equal(n.t, "status: "+got.body, got.status, http.StatusTooManyRequests)
	const begins = `{"error":"temporarily_unavailable","error_description":"`
	check.Equal(n.t, "body: "+got.body, strings.HasPrefix(got.body, begins), true)
	check.Equal(n.t, "Content-Type", got.header.Get("Content-Type"), "application/json")
	check.Equal(n.t, "Cache-Control", got.header.Get("Cache-Control"), "no-store")
	check.Equal(n.t, "RateLimit-Policy", got.header.Get("RateLimit-Policy"), policy)
	check.Equal(n.t, "Retry-After is there", got.header.Get("Retry-After") != "", true)
	check.Equal(n.t, "requests at the token endpoint", len(n.idp.take()), 0)
}

// TestNJSAsksTheJudge is deploy/nginx/judge.conf with the whole request for the judge.
func TestNJSAsksTheJudge(t *testing.T) {
	n := startThroughNJS(t)
	t.Run("a client by its body", func(t *testing.T) {
		n := n.in(t)
		const form = "grant_type=client_credentials&client_id=shop&client_secret=s"
		for range 2 {
			got := n.token(form)
			check.Equal(t, "status: "+got.body, got.status, http.StatusOK)
			check.Equal(t, "body", got.body, `{"access_token":"a token"}`)
			check.Equal(t, "RateLimit-Policy", got.header.Get("RateLimit-Policy"), `"tight";q=2;w=3600`)
			check.Equal(t, "RateLimit is there", got.header.Get("RateLimit") != "", true)
			check.Equal(t, "arrived", n.idp.take(), []arrival{{"POST", "/oauth2/token", form, "", formType, "127.0.0.1"}})
		}
		n.wantLimited(n.token(form), `"tight";q=2;w=3600`)
	})
	t.Run("a client by Basic", func(t *testing.T) {
		n := n.in(t)
		const form = "grant_type=client_credentials"
		header := basic("by-basic")
		header.Set("Content-Type", formType+"; charset=UTF-8")
		header.Set("X-Forwarded-For", "203.0.113.9")
		for range 2 {
			check.Equal(t, "status", n.ask("POST", "/oauth2/token", header, strings.NewReader(form)).status, http.StatusOK)
			check.Equal(t, "arrived", n.idp.take(), []arrival{{
				"POST", "/oauth2/token", form, header.Get("Authorization"), header.Get("Content-Type"), "127.0.0.1",
			}})
		}
		n.wantLimited(n.ask("POST", "/oauth2/token", header, strings.NewReader(form)), `"tight";q=2;w=3600`)
	})
	t.Run("a password by its user", func(t *testing.T) {
		n := n.in(t)
		form := func(user string) string {
			return "grant_type=password&client_id=web&password=p&username=" + user
		}
		for range 2 {
			check.Equal(t, "ada", n.token(form("ada")).status, http.StatusOK)
		}
		n.idp.take()
		n.wantLimited(n.token(form("ada")), `"personal";q=2;w=3600`)
		check.Equal(t, "bob", n.token(form("bob")).status, http.StatusOK)
	})
	t.Run("what gets no token has no fields", func(t *testing.T) {
		n := n.in(t)
		got := n.token("grant_type=client_credentials&client_id=errs&client_secret=bad")
		check.Equal(t, "status", got.status, http.StatusUnauthorized)
		check.Equal(t, "RateLimit", got.header.Get("RateLimit"), "")
	})
	t.Run("sizes", n.sizes)
	t.Run("refused", n.refused)
	t.Run("paths", n.paths)
	t.Run("many at once", n.manyAtOnce)
	t.Run("origin", n.origin)
	t.Run("scripts", n.scripts)
	t.Run("without a judge", n.withoutJudge)
}

// in is the same for a test of its own, of which the token endpoint has seen nothing.
func (n *throughNJS) in(t *testing.T) *throughNJS {
	t.Helper()
	own := *n
	own.t = t
	own.idp.take()
	return &own
}

// sizes sends bodies near the bound, with Content-Length and in chunks.
func (n *throughNJS) sizes(t *testing.T) {
	n = n.in(t)
	const limit = 64 << 10
	for name, wrap := range map[string]func(io.Reader) io.Reader{
		"with a length": func(r io.Reader) io.Reader { return r },
		"in chunks":     func(r io.Reader) io.Reader { return struct{ io.Reader }{r} },
	} {
		form := "grant_type=client_credentials&client_id=" + strings.ReplaceAll(name, " ", "-") + "&filler="
		form += strings.Repeat("x", limit-len(form))
		header := http.Header{"Content-Type": {formType}}
		for range 2 {
			check.Equal(t, name, n.ask("POST", "/oauth2/token", header, wrap(strings.NewReader(form))).status, http.StatusOK)
			got := n.idp.take()
			check.Equal(t, name+": the body arrives whole", len(got) == 1 && got[0].body == form, true)
		}
		n.wantLimited(n.ask("POST", "/oauth2/token", header, wrap(strings.NewReader(form))), `"tight";q=2;w=3600`)
		got := n.ask("POST", "/oauth2/token", header, wrap(strings.NewReader(form+"x")))
		check.Equal(t, name+", one byte more", got.status, http.StatusRequestEntityTooLarge)
		const tooLong = `{"error":"invalid_request","error_description":"The request is longer than 64 KiB."}`
		check.Equal(t, name+": body", got.body, tooLong)
		check.Equal(t, name+": type", got.header.Get("Content-Type"), "application/json")
		check.Equal(t, "requests at the token endpoint", len(n.idp.take()), 0)
	}
}

// refused sends what the judge could read differently from the token endpoint.
func (n *throughNJS) refused(t *testing.T) {
	const form, path = "grant_type=client_credentials&client_id=refused", "/oauth2/token"
	for name, tt := range map[string]struct {
		path, body string
		types      []string
		says       string
	}{
		"a query":        {path + "?client_id=other", form, []string{formType}, "Parameters belong in the body"},
		"JSON":           {path, `{"client_id":"shop","user":"ada"}`, []string{"application/json"}, "The content type must be"},
		"JSON beside":    {path, form, []string{formType + ";charset=utf-8, application/json"}, "The Content-Type"},
		"JSON first":     {path, `{"client_id":"shop"}`, []string{"application/json", formType}, "The content type must be"},
		"a client twice": {path, form + "&client_id=other", []string{formType}, "client_id"},
	} {
		t.Run(name, func(t *testing.T) {
			n := n.in(t)
			got := n.ask("POST", tt.path, http.Header{"Content-Type": tt.types}, strings.NewReader(tt.body))
			check.Equal(t, "status: "+got.body, got.status, http.StatusBadRequest)
			check.Equal(t, "error: "+got.body, strings.HasPrefix(got.body, `{"error":"invalid_request"`), true)
			check.Equal(t, "the body says why: "+got.body, strings.Contains(got.body, tt.says), true)
			check.Equal(t, "requests at the token endpoint", len(n.idp.take()), 0)
		})
	}
}

// paths asks at spellings of the path, and at other paths.
func (n *throughNJS) paths(t *testing.T) {
	n = n.in(t)
	const form = "grant_type=client_credentials&client_id=shop" // which has used up its limit
	header := http.Header{"Content-Type": {formType}}
	for _, path := range []string{
		"/oauth2/token", "/OAuth2/Token", "//oauth2/./token", "/oauth2/token/", "/oauth2;a=b/token;c", "/oauth2/%74oken",
	} {
		n.wantLimited(n.ask("POST", path, header, strings.NewReader(form)), `"tight";q=2;w=3600`)
	}
	for _, path := range []string{
		"/x/..;/oauth2/token", "/;a=b/oauth2/token", "/oauth2/.;/token", `/oauth2/%5ctoken`, "/oauth2;x%2fy/token", "/oauth2//../token",
	} {
		check.Equal(t, path, n.ask("POST", path, header, strings.NewReader(form)).status, http.StatusBadRequest)
		check.Equal(t, path, len(n.idp.take()), 0)
	}
	for _, path := range []string{"/oauth2/tokens?x=y", "/;jsessionid=a", "/oauth2/introspect", "/"} {
		check.Equal(t, path, n.ask("POST", path, header, strings.NewReader(form)).status, http.StatusOK)
		check.Equal(t, path, n.idp.take(), []arrival{{"POST", path, form, "", formType, "127.0.0.1"}})
	}
	for _, path := range []string{
		"/oauth2/token/x", "/oauth2/token.json", "/OAuth2/Token.PHP/x", "/oauth2/token%20", "/oauth2/token%0ax", "/index.php/oauth2/token", "/web/index.php/oauth2/token", "/oauth2.php/token;a/x",
	} {
		n.wantLimited(n.ask("POST", path, header, strings.NewReader(form)), `"tight";q=2;w=3600`)
		n.wantLimited(n.ask("POST", path, header, strings.NewReader("client_id=shop&grant_type=client_credentials")), `"tight";q=2;w=3600`)
		n.wantLimited(n.ask("OPTIONS", path, header, strings.NewReader(form)), `"tight";q=2;w=3600`)
	}
	for name, body := range map[string]string{
		"an encoded name": "client_id=shop&%67rant%5ftype=client_credentials", "JSON": `{"client_id":"shop","gr\u0061nt_type":"x"}`,
		"as PHP reads it": "client_id=shop&grant.type=x", "as ASP.NET reads it": "client_id=shop&grant%u005Ftype=x",
		"a name in pieces": `form-data; name*0="grant_"; name*1="type"`, "an encoded word": `form-data; name="=?utf-8?Q?grant=5Ftype?="`,
	} {
		got := n.ask("POST", "/oauth2/token/x", http.Header{"Content-Type": {"text/plain"}}, strings.NewReader(body))
		check.Equal(t, name, got.status, http.StatusBadRequest)
	}
	for kind, body := range map[string]string{"text/plain; charset=ibm037": "%87=x", "a/b; charset=utf-8; charset=utf-16": "x"} {
		got := n.ask("POST", "/oauth2/token/x", http.Header{"Content-Type": {kind}}, strings.NewReader(body))
		check.Equal(t, kind, got.status, http.StatusBadRequest)
	}
	n.idp.take()
	for kind, body := range map[string]string{formType: "token=t&client_id=shop&client_secret=s", "application/json; charset=utf-8": `{"grant_types":["password"]}`, "image/png": "\x00\xff%zz"} {
		check.Equal(t, kind, n.ask("POST", "/oauth2/token/introspect", http.Header{"Content-Type": {kind}}, strings.NewReader(body)).status, http.StatusOK)
		check.Equal(t, kind, n.idp.take(), []arrival{{"POST", "/oauth2/token/introspect", body, "", kind, "127.0.0.1"}})
	}
	n.wantLimited(n.ask("OPTIONS", "/oauth2/token", header, strings.NewReader(form)), `"tight";q=2;w=3600`)
	check.Equal(t, "OPTIONS with a query", n.ask("OPTIONS", "/oauth2/token?"+form, header, nil).status, http.StatusBadRequest)
	check.Equal(t, "preflight", n.ask("OPTIONS", "/oauth2/token", http.Header{}, nil).status, http.StatusOK)
	check.Equal(t, "preflight", n.idp.take()[0].method, "OPTIONS")
	got := n.ask("POST", "/judge", header, strings.NewReader(form))
	check.Equal(t, "the judge, from outside", got.status, http.StatusNotFound)
}

// manyAtOnce: requests under way at the same time do not get each other's answers.
func (n *throughNJS) manyAtOnce(t *testing.T) {
	n = n.in(t)
	const clients, requests = 40, 5
	var counted [clients]atomic.Int32
	var all sync.WaitGroup
	for i := range clients * requests {
		all.Go(func() {
			form := fmt.Sprintf("grant_type=client_credentials&client_id=at-once-%d", i%clients)
			got, err := n.do(http.MethodPost, "/oauth2/token", http.Header{"Content-Type": {formType}}, strings.NewReader(form))
			switch {
			case err != nil:
				t.Error(err)
			case got.status == http.StatusOK:
				counted[i%clients].Add(1)
			}
		})
	}
	all.Wait()
	arrived := map[string]int32{}
	for _, a := range n.idp.take() {
		arrived[a.body]++
	}
	for i := range clients {
		form := fmt.Sprintf("grant_type=client_credentials&client_id=at-once-%d", i)
		check.Equal(t, "tokens of "+form, counted[i].Load(), 2)
		check.Equal(t, "arrived of "+form, arrived[form], 2)
	}
}

// origin: the host and where a request comes from are what nginx says.
func (n *throughNJS) origin(t *testing.T) {
	n = n.in(t)
	const evil = "evil.example"
	forged := http.Header{"Content-Type": {formType}}
	for _, name := range []string{
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix", "X-Forwarded-Server",
		"X-Real-Ip", "X-Original-Url", "X-Rewrite-Url", "X_Forwarded_Host", "X.Forwarded.Host",
	} {
		forged[name] = []string{evil}
	}
	for _, path := range []string{"/oauth2/token", "/login"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+path, strings.NewReader("grant_type=client_credentials&client_id=origin"))
		check.OK(t, err)
		req.Host, req.Header = evil, forged
		res, err := n.client.Do(req)
		check.OK(t, err)
		check.OK(t, res.Body.Close())
		check.Equal(t, path, res.StatusCode, http.StatusOK)
		n.idp.take() // which locks
		check.Equal(t, path+": Host", n.idp.last.Host, "auth.example.com")
		for name, want := range map[string]string{
			"X-Forwarded-Host": "auth.example.com", "X-Forwarded-Proto": "http", "X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1",
		} {
			check.Equal(t, path+": "+name, n.idp.last.Header[name], []string{want})
		}
		for name, values := range n.idp.last.Header {
			check.Equal(t, path+": "+name+" is forged", strings.Contains(strings.Join(values, ""), evil), false)
		}
	}
}

// scripts: those of other sites may read what does not come from the token endpoint.
func (n *throughNJS) scripts(t *testing.T) {
	n = n.in(t)
	const site = "https://app.example"
	header := http.Header{"Content-Type": {formType}, "Origin": {site}}
	readable := func(what, path, form string, want int) http.Header {
		t.Helper()
		got := n.ask(http.MethodPost, path, header, strings.NewReader(form))
		check.Equal(t, what+": "+got.body, got.status, want)
		check.Equal(t, what, got.header["Access-Control-Allow-Origin"], []string{site})
		check.Equal(t, what, got.header["Access-Control-Allow-Credentials"], []string{"true"})
		check.Equal(t, what, got.header["Vary"], []string{"Origin"})
		return got.header
	}
	const form, path = "grant_type=client_credentials&client_id=script", "/oauth2/token"
	for range 2 {
		got := n.ask(http.MethodPost, path, header, strings.NewReader(form))
		check.Equal(t, "exposed with a token", got.header["Access-Control-Expose-Headers"], []string{"RateLimit, RateLimit-Policy"})
	}
	limited := readable("over the limit", path, form, 429)
	check.Equal(t, "Retry-After is exposed", strings.HasPrefix(limited.Get("Access-Control-Expose-Headers"), "Retry-After, "), true)
	readable("ambiguous", path, form+"&client_id=other", 400)
	readable("a query", path+"?x=y", form, 400)
	readable("too long", path, strings.Repeat("x", 65<<10), 413)
	readable("unreachable", path, "grant_type=client_credentials&client_id=breaks", 502)
}

// withoutJudge: while the judge is away, requests pass.
func (n *throughNJS) withoutJudge(t *testing.T) {
	n = n.in(t)
	n.stopJudge()
	got := n.token("grant_type=client_credentials&client_id=shop")
	check.Equal(t, "status", got.status, http.StatusOK)
	check.Equal(t, "RateLimit", got.header.Get("RateLimit"), "")
	check.Equal(t, "requests at the token endpoint", len(n.idp.take()), 1)
}
