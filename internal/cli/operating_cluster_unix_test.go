//go:build unix

package cli

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/check/testworld"
	"oauth-server/internal/store/mongo/mongotest"
)

// pageCluster is what stands around the instances of docs/deployment.md: the load balancer in front of
// them, clients, and the way to their database.
type pageCluster struct {
	t        *testing.T
	dir      string            // In which the shell runs
	at       map[string]string // addresses, by the port that the page shows
	issuer   string            // of the tokens of operators
	places   *strings.Replacer // puts them into the page
	between  *mongotest.Proxy  // In front of the database
	database *mongo.Database
	balancer *balancer // nil until there are instances
	load     *load
	user     *caller // who has signed in before the copy
	copied   []collectionCopy
}

// The ports of the page: of the load balancer, and of the instances, for clients and for operators.
var (
	clientPorts   = []string{"9101", "9102", "9103"}
	operatorPorts = []string{"9111", "9112", "9113"}
)

func newPageCluster(t *testing.T) *pageCluster {
	t.Helper()
	c := &pageCluster{t: t, dir: t.TempDir(), at: map[string]string{}}
	uri, name := mongotest.Database(t)
	ports := append([]string{"9096", "9097"}, append(clientPorts, operatorPorts...)...)
	free := reservedAddresses(t, len(ports))
	c.between = mongotest.NewProxy(t, uri)
	between, err := url.Parse(c.between.URI)
	check.OK(t, err)
	c.database = mongotest.Connect(t, uri).Database(name)
	var replaced []string
	for i, port := range ports {
		c.at[port] = free[i]
		replaced = append(replaced, "127.0.0.1:"+port, free[i])
		if port >= clientPorts[0] { // the page has it alone too
			replaced = append(replaced, port, strings.TrimPrefix(free[i], "127.0.0.1:"))
		}
	}
	c.places = strings.NewReplacer(append(replaced, "127.0.0.1:27017", between.Host, "database: oauth", "database: "+name)...)
	c.issuer = "http://" + c.at["9096"]
	c.load = newLoad(t, "http://"+c.at["9096"])
	return c
}

// reservedAddresses returns unused addresses, each once.
func reservedAddresses(t *testing.T, n int) (addresses []string) {
	t.Helper()
	for len(addresses) < n {
		if address := testworld.FreeAddress(t); !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// do does what the page has in a comment for the test.
func (c *pageCluster) do(what string) {
	c.t.Helper()
	does, ok := map[string]func(){
		"clients send requests at a steady rate":                                c.beginLoad,
		"each request was answered as ever, and each is counted once":           c.nothingFailed,
		"the third instance is suspended":                                       c.suspend,
		"the others refuse within two seconds, the third once it runs":          c.refused,
		"the database goes away":                                                c.between.Break,
		"the database is back":                                                  c.between.Restore,
		"only what needs the database failed, and nothing was lost":             func() { c.fewFailed(); c.countedOnce() },
		"the data are copied":                                                   c.copyData,
		"the database is back, without its data":                                c.loseData,
		"only what needs the database failed, and the copy is put in its place": func() { c.fewFailed(); c.restoreData() },
		"a refresh token of before the copy is good":                            c.refreshes,
	}[what]
	if !ok {
		c.t.Fatalf("the page has the test do what it cannot: %s", what)
	}
	does()
}

// secret returns the credentials of a client that the page has made.
func (c *pageCluster) secret(id string) credentials {
	c.t.Helper()
	return credentials{ClientID: id, ClientSecret: c.file(id + ".secret")}
}

func (c *pageCluster) file(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	check.OK(c.t, err)
	return strings.TrimSpace(string(text))
}

// As the page has them: the limit of the client batch, and a password.
const (
	batchLimit   = 200
	adasPassword = "tangerine walrus fence"
)

// beginLoad begins the requests: of machines far below their limit and above it, and of people.
func (c *pageCluster) beginLoad() {
	if c.balancer == nil {
		var instances []string
		for _, port := range clientPorts {
			instances = append(instances, c.at[port])
		}
		c.balancer = newBalancer(c.t, c.at["9096"], instances)
	}
	app := c.secret("app")
	c.load.begin(
		forMachine(app, true), forMachine(app, true), forMachine(c.secret("batch"), false), forMachine(c.secret("batch"), false),
		forPerson(app, "ada", adasPassword), forPerson(app, "ada", adasPassword),
	)
	check.Eventually(c.t, "the people have signed in", func() bool { return c.load.counted("sign-in 200") == 2 && c.load.counted("refresh 200") > 0 })
}

// What the load is answered, beside "app 200" and so on.
const (
	batchDenied       = "batch 429 temporarily_unavailable"
	refreshRefused    = "refresh 503 temporarily_unavailable"
	introspectRefused = "introspect 503 temporarily_unavailable"
)

// nothingFailed checks that a restart of all instances was not noticed.
func (c *pageCluster) nothingFailed() {
	c.t.Helper()
	check.Eventually(c.t, "the limit of batch is used up", func() bool { return c.load.counted(batchDenied) > 0 })
	c.load.halt()
	c.load.so([]string{"app 200", "batch 200", batchDenied, "introspect 200", "sign-in 200", "refresh 200"})
	// An instance that starts decides on what it has admitted itself until it has read the count.
	if passed := c.load.passed["batch"]; passed < batchLimit || passed > batchLimit*5/4 {
		c.t.Errorf("%d passed under a limit of %d", passed, batchLimit)
	}
	c.countedOnce()
}

// fewFailed checks that tokens of machines were issued all the time, and that no refresh token was taken
// for a bad one.
func (c *pageCluster) fewFailed() {
	c.t.Helper()
	c.load.halt()
	c.load.so([]string{"app 200", "introspect 200", "sign-in 200", "refresh 200", refreshRefused}, introspectRefused, "batch 200", batchDenied)
}

// countedOnce checks that the database has each request that a client was admitted with, once.
func (c *pageCluster) countedOnce() {
	c.t.Helper()
	for client, passed := range c.load.passed {
		filter := bson.D{{Key: "_id.clientId", Value: client}, {Key: "_id.username", Value: ""}}
		check.Eventually(c.t, "the requests of "+client+" are counted: "+strconv.Itoa(passed), func() bool {
			return stored(c.t, c.database, filter) == int64(passed)
		})
	}
}

// signal sends one to an instance.
func (c *pageCluster) signal(port string, s syscall.Signal) {
	c.t.Helper()
	_, free, err := net.SplitHostPort(c.at[port])
	check.OK(c.t, err)
	pid, err := strconv.Atoi(c.file(free + ".pid"))
	check.OK(c.t, err)
	check.OK(c.t, syscall.Kill(pid, s))
}

func (c *pageCluster) suspend() { c.signal(clientPorts[2], syscall.SIGSTOP) }

// slowMachine is what a busy machine may need beyond what the page promises.
const slowMachine = 3 * time.Second

// refused checks that no instance accepts what the operator had, two seconds after the commands. One that
// was suspended meanwhile has that time from when it runs again.
func (c *pageCluster) refused() {
	c.t.Helper()
	since := time.Now()
	for i, port := range operatorPorts {
		if i == 2 {
			c.signal(clientPorts[2], syscall.SIGCONT)
			since = time.Now()
		}
		for _, had := range []string{"lea.token", "ops.token"} {
			check.Eventually(c.t, had+" is refused at "+port, func() bool { return c.change(port, c.file(had)) == http.StatusUnauthorized })
		}
		if late := time.Since(since); late > promptly+slowMachine {
			c.t.Errorf("the instance at %s refused after %v", port, late)
		}
	}
}

// change returns what an instance answers to a change, which it does not make.
func (c *pageCluster) change(port, token string) int {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPatch,
		"http://"+c.at[port]+"/admin/v1/settings?validate=true", strings.NewReader(`{"canary_percent":100}`))
	check.OK(c.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/merge-patch+json")
	req.Header.Set("If-Match", "*")
	status, _ := send(c.t, req)
	return status
}

// collectionCopy is a collection with its indexes.
type collectionCopy struct {
	name               string
	documents, indexes []bson.Raw
}

// copyData does what mongodump does. A person has signed in before.
func (c *pageCluster) copyData() {
	c.t.Helper()
	c.user = &caller{load: c.load, http: http.DefaultClient}
	c.refreshes()
	names, err := c.database.ListCollectionNames(c.t.Context(), bson.D{})
	check.OK(c.t, err)
	for _, name := range names {
		copied, all := collectionCopy{name: name}, c.database.Collection(name)
		documents, err := all.Find(c.t.Context(), bson.D{})
		check.OK(c.t, err)
		check.OK(c.t, documents.All(c.t.Context(), &copied.documents))
		indexes, err := all.Indexes().List(c.t.Context())
		check.OK(c.t, err)
		check.OK(c.t, indexes.All(c.t.Context(), &copied.indexes))
		c.copied = append(c.copied, copied)
	}
}

// loseData lets the database be back once an instance has noticed that it is away.
func (c *pageCluster) loseData() {
	c.t.Helper()
	check.Eventually(c.t, "a refresh was answered with 503", func() bool { return c.load.counted(refreshRefused) > 0 })
	check.OK(c.t, c.database.Drop(c.t.Context()))
	c.between.Restore()
}

const namespaceExists = 48 // an error code of MongoDB

// restoreData does what mongorestore does, while the instances do not reach the database. The server may still carry
// out a command that it got before, such as a heartbeat or a write of counts, which creates its collection.
func (c *pageCluster) restoreData() {
	c.t.Helper()
	c.between.Break()
	defer c.between.Restore()
	check.OK(c.t, c.database.Drop(c.t.Context()))
	for _, copied := range c.copied {
		check.Eventually(c.t, "no command creates "+copied.name, func() bool {
			check.OK(c.t, c.database.Collection(copied.name).Drop(c.t.Context()))
			err := c.database.CreateCollection(c.t.Context(), copied.name)
			if exists := (mongo.CommandError{}); errors.As(err, &exists) && exists.HasErrorCode(namespaceExists) {
				return false
			}
			check.OK(c.t, err)
			return true
		})
		for _, index := range copied.indexes {
			c.createIndex(copied.name, index)
		}
		if len(copied.documents) > 0 {
			_, err := c.database.Collection(copied.name).InsertMany(c.t.Context(), copied.documents)
			check.OK(c.t, err)
		}
	}
}

// refreshes has the person of copyData sign in, and refresh at the next call.
func (c *pageCluster) refreshes() {
	c.t.Helper()
	before := c.user.refresh
	forPerson(c.secret("app"), "ada", adasPassword)(c.user)
	if c.user.refresh == before {
		c.t.Errorf("no new refresh token: %v", c.load.answers)
	}
}

func (c *pageCluster) createIndex(collection string, index bson.Raw) {
	c.t.Helper()
	var spec, wanted bson.D
	check.OK(c.t, bson.Unmarshal(index, &spec))
	for _, e := range spec {
		switch e.Key {
		case "v", "ns":
		case "name":
			if e.Value == "_id_" {
				return
			}
			fallthrough
		default:
			wanted = append(wanted, e)
		}
	}
	command := bson.D{{Key: "createIndexes", Value: collection}, {Key: "indexes", Value: bson.A{wanted}}}
	check.OK(c.t, c.database.RunCommand(c.t.Context(), command).Err())
}

// stored returns the sum of the counts in the database, over the matching documents.
func stored(t *testing.T, db *mongo.Database, filter bson.D) (sum int64) {
	t.Helper()
	documents, err := db.Collection("ratelimits").Find(t.Context(), filter)
	check.OK(t, err)
	var all []struct {
		Counters map[string]int64 `bson:"requestCounters"`
	}
	check.OK(t, documents.All(t.Context(), &all))
	for _, d := range all {
		for _, n := range d.Counters {
			sum += n
		}
	}
	return sum
}
