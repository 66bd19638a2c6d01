package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oauth-server/internal/check"
	"oauth-server/internal/ratelimit"
	"oauth-server/internal/strict"
	"oauth-server/internal/strict/fielderr"
)

// Each file of testdata/bad has one fault, and lists in "# want:" lines exactly the problems that
// are reported for it.
func TestLoadReportsBadFiles(t *testing.T) {
	t.Chdir("testdata/bad")
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad configurations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, ".yaml"), func(t *testing.T) {
			_, err := Load(Sources{File: file})
			problems := fielderr.Of(err)
			if problems == nil {
				t.Fatalf("Load() = %v, want problems", err)
			}
			check.Equal(t, "problems", problems.Error(), wanted(t, file))
		})
	}
}

func wanted(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	check.OK(t, err)
	var want []string
	for line := range strings.Lines(string(text)) {
		if w, ok := strings.CutPrefix(line, "# want: "); ok {
			want = append(want, strings.TrimSpace(w))
		}
	}
	return strings.Join(want, "\n")
}

func TestLoadWithoutSourcesIsDefault(t *testing.T) {
	got, err := Load(Sources{})
	check.OK(t, err)
	check.Equal(t, "configuration", got, Default())
}

func TestLoadCompleteFile(t *testing.T) {
	got, err := Load(Sources{File: "testdata/complete.yaml"})
	check.OK(t, err)
	minute := ratelimit.Limit{
		Name: "per-minute", Requests: 100, Window: time.Minute,
		Frames: 6, Algorithm: "sliding", SoftRatio: 0.8, OnOutage: "share",
	}
	second := ratelimit.Limit{
		Name: "per-second", Requests: 2, Window: time.Second,
		Frames: 1, Algorithm: "fixed", SoftRatio: 0.8, OnOutage: "deny",
	}
	contract := ratelimit.NewLimit("contract", 10, 10*time.Minute)
	contract.MakeStrict()
	contract.LeaseWait = 100 * time.Millisecond
	renewals := ratelimit.NewLimit("renewals", 10, 10*time.Minute)
	renewals.Grants = ratelimit.GrantRefresh | ratelimit.GrantPassword
	ban := ratelimit.DefaultBan()
	ban.Factor, ban.Forget = 1.5, 48*time.Hour
	ten := minute
	ten.Requests, ten.Frames = 10, 1
	checks := []struct {
		name      string
		got, want any
	}{
		{"issuer", got.Issuer, "https://auth.example.com"},
		{"store", got.Store, Store{MongoDB: &MongoDB{URI: "mongodb://oauth:s3cret@db1,db2/?replicaSet=rs0", Database: "tokens"}}},
		{"access ttl", got.Tokens.AccessTTL.Std(), 15 * time.Minute},
		{"proxies", []string{got.TrustedProxies[0].String(), got.TrustedProxies[1].String()}, []string{"10.0.0.0/8", "2001:db8::1/128"}},
		{"canary", got.RateLimit.CanaryPercent, 12.5},
		{"error code", got.RateLimit.ErrorCode, "slow_down"},
		{"criticality of all", got.RateLimit.Default.Criticality, ratelimit.SheddablePlus},
		{"trusted", got.RateLimit.Clients["mobile-app"], ratelimit.Policy{Trusted: true, Ban: &ratelimit.Ban{Off: true}, Criticality: ratelimit.CriticalPlus}},
		{
			"a client with dots", got.RateLimit.Clients["shop.example.com"],
			ratelimit.Policy{Mode: "enforce", OverLimit: "reuse", MaxWait: new(ratelimit.Duration(0)), Ban: &ban, Criticality: ratelimit.Sheddable, HideHeaders: new(true), User: []ratelimit.Limit{ten, second}},
		},
		{"strict", got.RateLimit.Clients["payments"], ratelimit.Policy{Client: []ratelimit.Limit{contract}}},
		{
			"grants and a source", got.RateLimit.Clients["by-address"],
			ratelimit.Policy{User: []ratelimit.Limit{renewals}, Source: []ratelimit.Limit{ratelimit.NewLimit("per-address", 200, time.Minute)}},
		},
		{"overload", got.Overload, Overload{Mode: ratelimit.DryRun, Target: Duration(25 * time.Millisecond), MaxInFlight: 2000}},
		{"alias", got.RateLimit.Clients["like-everybody"], ratelimit.Policy{User: []ratelimit.Limit{minute}}},
	}
	for _, c := range checks {
		check.Equal(t, c.name, c.got, c.want)
	}
}

func TestPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "oauth.yaml")
	text := "listen: 127.0.0.1:1\nlog: { level: warn, format: json }\nshutdown_timeout: 3s\n"
	check.OK(t, os.WriteFile(file, []byte(text), 0o600))
	got, err := Load(Sources{
		File:    file,
		Environ: []string{"OAUTH_LISTEN=127.0.0.1:2", "OAUTH_LOG_LEVEL=error", "OAUTH_ISSUER="},
		Flags:   []FlagValue{{"listen", "127.0.0.1:3"}, {"trusted-proxies", "::1"}, {"trusted-proxies", "10.0.0.1,10.0.0.2"}},
	})
	check.OK(t, err)
	want := Default()
	want.Listen = "127.0.0.1:3"
	want.Log = Log{Format: "json", Level: "error"}
	want.ShutdownTimeout = Duration(3 * time.Second)
	var p1, p2, p3 Prefix
	for p, s := range map[*Prefix]string{&p1: "::1", &p2: "10.0.0.1", &p3: "10.0.0.2"} {
		check.OK(t, p.UnmarshalText([]byte(s)))
	}
	want.TrustedProxies = Proxies{p1, p2, p3}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b Prefix) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

// TestProxies: if the configuration does not mention a proxy, it was most likely forgotten.
//
// Attack (sources): A forgotten proxy. With an https issuer the server starts only if
// `trusted_proxies` is set. Also cli.TestProxiesAreAskedFor.
func TestProxies(t *testing.T) {
	https := []string{"OAUTH_ISSUER=https://auth.example.com"}
	tests := map[string]struct {
		file  string
		env   []string
		flags []FlagValue
		want  []string // trusted addresses
		ok    bool
	}{
		"https, nothing":           {"", https, nil, nil, false},
		"https, none":              {"trusted_proxies: none", https, nil, []string{}, true},
		"https, none in a list":    {"trusted_proxies: [ none ]", https, nil, []string{}, true},
		"https, none by variable":  {"", append(https, "OAUTH_TRUSTED_PROXIES=none"), nil, []string{}, true},
		"https, none over a list":  {"trusted_proxies: [ 10.0.0.1 ]", https, []FlagValue{{"trusted-proxies", "none"}}, []string{}, true},
		"https, a list over none":  {"trusted_proxies: none", https, []FlagValue{{"trusted-proxies", "10.0.0.1"}}, []string{"10.0.0.1/32"}, true},
		"https, none and a proxy":  {"", https, []FlagValue{{"trusted-proxies", "none"}, {"trusted-proxies", "10.0.0.1"}}, nil, false},
		"http on loopback":         {"", nil, nil, []string{}, true},
		"http on loopback, issuer": {"", []string{"OAUTH_ISSUER=http://localhost:9096"}, nil, []string{}, true},
		"https, empty variable":    {"", append(https, "OAUTH_TRUSTED_PROXIES="), nil, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "oauth.yaml")
			check.OK(t, os.WriteFile(file, []byte(tt.file+"\n"), 0o600))
			cfg, err := Load(Sources{File: file, Environ: tt.env, Flags: tt.flags})
			if !tt.ok {
				if err == nil {
					t.Error("it was accepted")
				}
				return
			}
			check.OK(t, err)
			got := []string{}
			for _, p := range cfg.TrustedProxies.Ranges() {
				got = append(got, p.String())
			}
			check.Equal(t, "ranges", got, tt.want)
			again := &Config{}
			if ps := again.parse("again.yaml", []byte(printed(t, cfg)), map[string]string{}); len(ps) > 0 || printed(t, again) != printed(t, cfg) {
				t.Errorf("%v in\n%s", ps, printed(t, cfg))
			}
		})
	}
}

// A server that speaks HTTPS itself needs no proxy.
func TestProxiesAreNotRequiredWithTLS(t *testing.T) {
	c := Default()
	c.Issuer, c.TLS = "https://auth.example.com", TLS{CertFile: "cert.pem", KeyFile: "key.pem"}
	if err := c.Validate(); err != nil && strings.Contains(err.Error(), "trusted_proxies") {
		t.Error(err)
	}
}

func TestStoreOfTheStrongestSourceWins(t *testing.T) {
	embedded := func(path string) Store { return Store{Embedded: &Embedded{Path: path}} }
	mongo := func(uri, db string) Store { return Store{MongoDB: &MongoDB{URI: uri, Database: db}} }
	uri := "mongodb://localhost"
	tests := []struct {
		name  string
		env   []string
		flags []FlagValue
		want  Store
	}{
		{"none", nil, nil, embedded(DefaultStorePath)},
		{"flag over environment", []string{"OAUTH_MONGODB_URI=" + uri}, []FlagValue{{"data", "x.db"}}, embedded("x.db")},
		{"the other way", []string{"OAUTH_DATA=x.db"}, []FlagValue{{"mongodb-uri", uri}}, mongo(uri, "oauth")},
		{"database from elsewhere", []string{"OAUTH_MONGODB_DATABASE=d"}, []FlagValue{{"mongodb-uri", uri}}, mongo(uri, "d")},
		{"database and data", []string{"OAUTH_MONGODB_DATABASE=d"}, []FlagValue{{"data", "x.db"}}, embedded("x.db")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := LoadStore(Sources{Environ: tt.env, Flags: tt.flags})
			check.OK(t, err)
			check.Equal(t, "store", got.Store, tt.want)
		})
	}
}

func TestURIFromAFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		check.OK(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good, empty, missing := write("good", "mongodb://a:s3cret@db/\n"), write("empty", " \n"), filepath.Join(dir, "none")
	yaml := write("c.yaml", "store: { mongodb: { uri: 'mongodb://elsewhere', database: d } }\n")

	got, err := LoadStore(Sources{File: yaml, Environ: []string{"OAUTH_MONGODB_URI_FILE=" + good}})
	check.OK(t, err)
	check.Equal(t, "store", got.Store, Store{MongoDB: &MongoDB{URI: "mongodb://a:s3cret@db/", URIFile: good, Database: "d"}})
	if shown := printed(t, got); strings.Contains(shown, "s3cret") || !strings.Contains(shown, "uri_file: "+good) {
		t.Errorf("printed as\n%s", shown)
	}
	got, err = LoadStore(Sources{Environ: []string{"OAUTH_MONGODB_URI_FILE=" + missing}, Flags: []FlagValue{{"mongodb-uri", "mongodb://flag"}}})
	if err != nil || got.Store.MongoDB.URI != "mongodb://flag" {
		t.Errorf("the flag does not win: %+v, %v", got.Store.MongoDB, err)
	}
	for want, flags := range map[string][]FlagValue{
		"no such file":            {{"mongodb-uri-file", missing}},
		"is empty":                {{"mongodb-uri-file", empty}},
		"cannot be used together": {{"mongodb-uri-file", good}, {"mongodb-uri", "mongodb://flag"}},
		"must begin with":         {{"mongodb-uri-file", yaml}},
	} {
		_, err := LoadStore(Sources{Flags: flags})
		if found := fielderr.Of(err); len(found) != 1 || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one problem: %s", err, want)
		}
	}
}

func TestProblemsOfEnvironmentAndFlags(t *testing.T) {
	tests := []struct {
		name  string
		env   []string
		flags []FlagValue
		want  string
	}{
		{"misspelt variable", []string{"OAUTH_LISTN=x"}, nil, "OAUTH_LISTN: unknown variable; did you mean OAUTH_LISTEN?"},
		{"unknown variable", []string{"OAUTH_COLOUR_OF_THE_SKY=blue"}, nil, "OAUTH_COLOUR_OF_THE_SKY: unknown variable"},
		{"bad variable", []string{"OAUTH_LISTEN=9096"}, nil, `listen: "9096" is not host:port (OAUTH_LISTEN)`},
		{"bad flag", nil, []FlagValue{{"tokens-access-ttl", "soon"}}, `tokens.access_ttl: must be a duration with a unit, such as 60s, not "soon" (--tokens-access-ttl)`},
		{"not a number", nil, []FlagValue{{"rate-limit-canary-percent", "NaN"}}, `rate_limit.canary_percent: NaN is not between 0 and 100 (--rate-limit-canary-percent)`},
		{"both stores", nil, []FlagValue{{"data", "x"}, {"mongodb-uri", "mongodb://h"}}, "store: embedded (--data) and mongodb (--mongodb-uri) cannot be used together"},
		{"no such file", []string{"OAUTH_CONFIG=no-such-file.yaml"}, nil, "--config: open no-such-file.yaml: no such file or directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(Sources{Environ: tt.env, Flags: tt.flags})
			if err == nil || err.Error() != tt.want {
				t.Errorf("Load() = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	env := []string{
		"PATH=/bin", "OAUTH=x", "OAUTH_PORT=tcp://10.0.0.1:9096", "OAUTH_SERVICE_HOST=10.0.0.1",
		"OAUTH_SERVER_SERVICE_PORT=9096", "OAUTH_SERVER_SERVICE_PORT_HTTP=9096",
		"OAUTH_SERVER_PORT_9096_TCP_ADDR=10.0.0.1", "OAUTH_CLIENT_SECRET=s",
	}
	if _, err := Load(Sources{Environ: env}); err != nil {
		t.Error(err)
	}
}

// The environment and flags use the same names as the file, so every such setting must be available
// in both.
func TestEveryPlainFieldHasItsOption(t *testing.T) {
	covered := map[string]bool{"rate_limit.default": true, "rate_limit.clients": true, "scopes": true}
	for _, o := range Options() {
		covered[o.Path] = true
	}
	var walk func(v reflect.Type, path string)
	walk = func(v reflect.Type, path string) {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if covered[path] {
			return
		}
		if v.Kind() != reflect.Struct {
			t.Errorf("%s has no flag and no variable", path)
			return
		}
		for _, f := range reflect.VisibleFields(v) {
			if name := strict.Name(f); name != "" {
				walk(f.Type, fielderr.Join(path, name))
			}
		}
	}
	walk(reflect.TypeFor[Config](), "")
}

// A variable set from a secret made with echo ends with a line break, which is not part of the
// value.
func TestLineBreakBehindAVariable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "oauth.yaml")
	check.OK(t, os.WriteFile(file, []byte("log: { level: warn }\n"), 0o600))
	var plain, broken []string
	for _, kv := range []string{
		"OAUTH_CONFIG=" + file, "OAUTH_LISTEN=127.0.0.1:2", "OAUTH_ISSUER=https://id.example", "OAUTH_MONGODB_URI=mongodb://h/?replicaSet=rs0",
		"OAUTH_KEYS_SECRET=" + oneSecret, "OAUTH_TRUSTED_PROXIES=10.0.0.0/8,192.0.2.1", "OAUTH_SHUTDOWN_TIMEOUT=7s",
	} {
		plain, broken = append(plain, kv), append(broken, kv+"\r\n")
	}
	want, err := Load(Sources{Environ: plain})
	check.OK(t, err)
	got, err := Load(Sources{Environ: append(broken, "OAUTH_LOG_FORMAT=\n")})
	check.OK(t, err)
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b Prefix) bool { return a == b })); diff != "" {
		t.Errorf("with line breaks (-without +with):\n%s", diff)
	}
}
