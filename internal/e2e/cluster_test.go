package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/mongotest"
)

// cluster is servers that share one MongoDB database.
type cluster struct {
	t        testing.TB
	uri      string // of the MongoDB server
	database string
	config   string            // file
	secrets  map[string]string // by client_id
	db       *mongo.Database   // past the proxies
	http     *http.Client
	members  []*member // all that were ever added
	ledger   ledger

	mu      sync.Mutex // of secrets and serving
	serving []*member  // those that requests are sent to
}

// member is one server of a cluster.
type member struct {
	*server
	number int
	proxy  *mongotest.Proxy // between it and the database
	wall   *wallClock       // nil: that of the machine
	admin  string           // address of metrics
}

// newCluster returns a cluster without members, whose database has these clients.
func newCluster(tb testing.TB, config string, clients ...string) *cluster {
	tb.Helper()
	uri, name := mongotest.Database(tb)
	c := &cluster{t: tb, uri: uri, database: name, secrets: map[string]string{}, db: mongotest.Connect(tb, uri).Database(name)}
	c.config = filepath.Join(tb.TempDir(), "config.yaml")
	check.OK(tb, os.WriteFile(c.config, []byte(config), 0o600))
	c.http = newHTTPClient(tb)
	c.command("", "migrate", "up")
	var creating sync.WaitGroup
	for _, id := range clients {
		creating.Go(func() { c.register(id, "--grant", "client_credentials") })
	}
	creating.Wait()
	return c
}

// command runs a command on the database.
func (c *cluster) command(stdin string, args ...string) []byte {
	c.t.Helper()
	out, err := command(c.t.Context(), stdin, append(args, "--mongodb-uri", c.uri, "--mongodb-database", c.database)...)
	check.OK(c.t, err)
	return out
}

// register creates a client and keeps its secret.
func (c *cluster) register(id string, args ...string) {
	c.t.Helper()
	var made struct {
		Secret string `json:"client_secret"`
	}
	check.OK(c.t, json.Unmarshal(c.command("", append([]string{"client", "create", id, "-o", "json"}, args...)...), &made))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.secrets[id] = made.Secret
}

// addUser creates the user of all tests.
func (c *cluster) addUser() {
	c.t.Helper()
	c.command(password+"\n", "user", "create", user, "--password-stdin")
}

// send sends a form to a server with the credentials of a client.
func (c *cluster) send(m *member, path, clientID string, form url.Values) reply {
	c.t.Helper()
	return postForm(c.t, c.http, m.Issuer+path, clientID, c.secrets[clientID], form)
}

// add makes a server that has not started.
func (c *cluster) add() *member {
	c.t.Helper()
	proxy := mongotest.NewProxy(c.t, c.uri)
	m := &member{number: len(c.members), proxy: proxy}
	m.server = &server{tb: c.t, file: c.config}
	m.args = []string{
		"serve", "--config", c.config, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--issuer", "http://127.0.0.1:9096", "--shutdown-timeout", "60s",
		"--mongodb-uri", polled(c.t, proxy.URI), "--mongodb-database", c.database,
	}
	c.members = append(c.members, m)
	c.t.Cleanup(func() {
		if m.cmd != nil {
			m.kill()
		}
		if c.t.Failed() && m.logs != nil {
			c.t.Logf("log of server %d without requests:\n%s", m.number, m.events())
		}
	})
	return m
}

// polled is the URI of a single server that is looked after by questions: the
// proxy passes on one reply per request.
func polled(tb testing.TB, uri string) string {
	tb.Helper()
	u, err := url.Parse(uri)
	check.OK(tb, err)
	q := u.Query()
	q.Set("directConnection", "true")
	q.Set("serverMonitoringMode", "poll")
	u.Path, u.RawQuery = "/", q.Encode()
	return u.String()
}

// grow adds servers and starts them.
func (c *cluster) grow(n int) {
	c.t.Helper()
	first := len(c.members)
	for range n {
		c.add()
	}
	c.start(c.members[first:]...)
}

var addresses = regexp.MustCompile(`msg=listening address=(\S+) .*admin_address=(\S+)`)

// start starts servers and waits until they listen.
func (c *cluster) start(members ...*member) {
	c.t.Helper()
	for _, m := range members {
		m.launch()
	}
	for _, m := range members {
		m.await()
		found := addresses.FindStringSubmatch(m.logs.String())
		if found == nil {
			c.t.Fatalf("no addresses in the log:\n%s", m.logs)
		}
		m.Issuer, m.admin = "http://"+found[1], found[2]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving = append(slices.Clone(c.serving), members...)
}

// leave sends a server no more requests.
func (c *cluster) leave(m *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serving = slices.DeleteFunc(slices.Clone(c.serving), func(other *member) bool { return other == m })
}

// asked are the servers that requests are sent to.
func (c *cluster) asked() []*member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.serving
}

// stop ends servers by SIGTERM, all at the same time.
func (c *cluster) stop(members ...*member) {
	c.t.Helper()
	for _, m := range members {
		m.terminate()
	}
	for _, m := range members {
		check.Equal(c.t, fmt.Sprintf("exit status of server %d", m.number), m.ended(), 0)
	}
}

// ask sends a token request and reports whether it was admitted. The ledger has
// it afterwards.
func (c *cluster) ask(ctx context.Context, m *member, clientID string) bool {
	r := request{client: clientID, member: m.number, began: time.Now()}
	form := url.Values{"grant_type": {"client_credentials"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Error(err)
		return false
	}
	req.SetBasicAuth(clientID, c.secrets[clientID])
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := c.http.Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	r.ended = time.Now()
	switch {
	case err != nil:
		r.outcome = unanswered
	case res.StatusCode == http.StatusOK:
		r.outcome = admitted
	case res.StatusCode == http.StatusTooManyRequests:
		r.outcome = denied
	default:
		c.t.Errorf("server %d, client %s: status %s", m.number, clientID, res.Status)
		r.outcome = unanswered
	}
	c.ledger.add(r)
	return r.outcome == admitted
}

// turns sends requests one after the other, to the servers and for the clients in
// turn, no more than one per pace, until the context ends.
func (c *cluster) turns(ctx context.Context, pace time.Duration, clients ...string) {
	every(ctx, pace, func(i int) {
		members := c.asked()
		c.ask(c.t.Context(), members[i%len(members)], clients[i/len(members)%len(clients)])
	})
}

// turnsAt is turns for one server.
func (c *cluster) turnsAt(ctx context.Context, m *member, pace time.Duration, clients ...string) {
	every(ctx, pace, func(i int) { c.ask(c.t.Context(), m, clients[i%len(clients)]) })
}

// every calls do with 0, 1 and so on, no more than once per pace, until the context
// ends.
func every(ctx context.Context, pace time.Duration, do func(i int)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			do(i)
		case <-ctx.Done():
			return
		}
	}
}

// document is a counter as the database has it.
type document struct {
	ID struct {
		ClientID string `bson:"clientId"`
	} `bson:"_id"`
	Frame    int64            `bson:"frame"` // milliseconds
	Writers  map[string]int64 `bson:"writers"`
	Counters map[string]int64 `bson:"requestCounters"`
}

// documents returns the counters of all clients. The verification of the database, which may still run when a server listens, has
// counters of a client ID that no client can have. If a proxy delays a write of them until they are deleted, their expiry removes them.
func (c *cluster) documents(ctx context.Context) (all []document, err error) {
	cursor, err := c.db.Collection("ratelimits").Find(ctx, bson.D{})
	if err != nil {
		return nil, err
	}
	err = cursor.All(ctx, &all)
	return slices.DeleteFunc(all, func(d document) bool { return strings.HasPrefix(d.ID.ClientID, "verify scratch ") }), err
}

// stored is what the database has counted, by client.
func (c *cluster) stored() map[string]int64 {
	c.t.Helper()
	all, err := c.documents(c.t.Context())
	check.OK(c.t, err)
	sum := map[string]int64{}
	for _, d := range all {
		for _, n := range d.Counters {
			sum[d.ID.ClientID] += n
		}
	}
	return sum
}

// events is its log without the lines of single requests.
func (m *member) events() string {
	var b strings.Builder
	for line := range strings.Lines(m.logs.String()) {
		if !strings.Contains(line, "msg=request ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// logged returns the lines of its log that contain the text.
func (m *member) logged(text string) (lines []string) {
	for line := range strings.Lines(m.logs.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}
