package sharing_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/ratelimit"
	"oauth-server/lab/servers"
)

// collection is that of the counters.
const collection = "ratelimits"

// mix is a limit, the requests that come, and the instances that they come to.
type mix struct {
	instances int
	users     int
	limit     int64 // for each user
	window    time.Duration
	offered   float64 // requests per second of all users
}

func (m mix) String() string {
	return fmt.Sprintf("%d-instances,%d-users,%d-per-%s,%.0f-offered-per-s", m.instances, m.users, m.limit, m.window, m.offered)
}

// mixes are one busy user, small limits, and many users far below their limits.
func mixes() []mix {
	return []mix{
		{10, 1, 1000, 20 * time.Second, 500},
		{10, 10, 10, 20 * time.Second, 30},
		{3, 2000, 100, 20 * time.Second, 400},
	}
}

// traffic is what was sent to the collection of counters. Bytes are those of commands and of their replies.
type traffic struct{ updates, commands, bytes int64 }

func trafficOf(p *servers.Proxy) (sum traffic) {
	for command, t := range p.Traffic() {
		if strings.HasSuffix(command, " "+collection) {
			sum.updates += t.Updates
			sum.commands += t.Commands
			sum.bytes += t.Sent + t.Received
		}
	}
	return sum
}

func newProxy(tb testing.TB, uri string) *servers.Proxy {
	tb.Helper()
	p, err := servers.NewProxy(tb.Context(), uri)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = p.Close() })
	return p
}

// outcome is what a mix came to.
type outcome struct {
	traffic
	offered, admitted int64
	exact             int64 // that one counter would have admitted
}

// BenchmarkDatabase is what each admitted request costs the database: updates, commands and bytes of commands and
// replies, and by how many per cent more is admitted than by one exact counter: for our syncer, for one that exchanges
// every second, and for one atomic increment per request. The last is computed: each request, admitted or not, is one
// command, whose bytes are measured. All mixes run at once, each with connections of its own, for a minute of real time,
// or for ten seconds with -short.
func BenchmarkDatabase(b *testing.B) {
	perIncrement := incrementBytes(b, newDatabase(b))
	length := time.Minute
	if testing.Short() {
		length = 10 * time.Second
	}
	kinds := []string{"ours", "every-second"}
	found := make([]outcome, len(kinds)*len(mixes()))
	var running sync.WaitGroup
	for i, m := range mixes() {
		for j, kind := range kinds {
			c := m.start(b, kind)
			running.Go(func() { found[len(kinds)*i+j] = c.run(length) })
		}
	}
	running.Wait()
	for i, m := range mixes() {
		for j, kind := range kinds {
			o := found[len(kinds)*i+j]
			b.Run(fmt.Sprintf("mix=%s/sharing=%s", m, kind), func(b *testing.B) { o.report(b) })
		}
		o := found[len(kinds)*i]
		o.traffic = traffic{updates: o.offered, commands: o.offered, bytes: o.offered * perIncrement}
		o.admitted = o.exact
		b.Run(fmt.Sprintf("mix=%s/sharing=increment", m), func(b *testing.B) { o.report(b) })
	}
}

func (o *outcome) report(b *testing.B) {
	b.Helper()
	for b.Loop() {
		admitted := float64(o.admitted)
		b.ReportMetric(float64(o.updates)/admitted, "updates/admitted")
		b.ReportMetric(float64(o.commands)/admitted, "commands/admitted")
		b.ReportMetric(float64(o.bytes)/admitted, "bytes/admitted")
		b.ReportMetric(100*max(admitted/float64(o.exact)-1, 0), "over-%")
		b.ReportMetric(0, "ns/op")
	}
}

// cluster is the instances of a mix, which share one database.
type cluster struct {
	mix
	proxy     *servers.Proxy
	instances []instance
	exact     *decider
}

func (m mix) start(b *testing.B, kind string) *cluster {
	b.Helper()
	db := newDatabase(b)
	c := &cluster{mix: m, proxy: newProxy(b, db.uri), exact: newDecider(b, m.limit, m.window)}
	for i := range m.instances {
		store := db.open(b, c.proxy.URI)
		if kind == "ours" {
			c.instances = append(c.instances, newOurs(b, store, m.limit, m.window))
		} else {
			c.instances = append(c.instances, newEverySecond(b, store, m.limit, m.window, i))
		}
	}
	return c
}

// run offers the requests at random times, each to a random instance.
func (c *cluster) run(length time.Duration) (o outcome) {
	random := rand.New(rand.NewPCG(1, uint64(c.mix.instances)))
	began := time.Now()
	for since := time.Duration(0); since < length; {
		since += time.Duration(random.ExpFloat64() / c.offered * float64(time.Second))
		if rest := since - time.Since(began); rest > time.Millisecond {
			<-time.After(rest)
		}
		o.offered++
		k := ratelimit.Key{ClientID: "client", Username: "user-" + strconv.Itoa(random.IntN(c.users))}
		if c.instances[random.IntN(len(c.instances))].take(k) {
			o.admitted++
		}
		if c.exact.take(k) {
			o.exact++
		}
	}
	for _, i := range c.instances {
		i.stop()
	}
	o.traffic = trafficOf(c.proxy)
	return o
}

// incrementBytes returns the bytes of one increment that answers with the count, and of its reply.
func incrementBytes(b *testing.B, db *database) int64 {
	b.Helper()
	p := newProxy(b, db.uri)
	client, err := mongo.Connect(options.Client().ApplyURI(p.URI))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Disconnect(b.Context()) }()
	counters := client.Database(db.name + "_increment").Collection(collection)
	const n = 100
	for i := range n {
		id := bson.D{{Key: "clientId", Value: "client"}, {Key: "username", Value: "user-" + strconv.Itoa(i%10)}, {Key: "window", Value: int64(29_700_000)}}
		change := bson.D{
			{Key: "$inc", Value: bson.D{{Key: "count", Value: int64(1)}}},
			{Key: "$setOnInsert", Value: bson.D{{Key: "expire", Value: time.Now().Add(time.Minute)}}},
		}
		err := counters.FindOneAndUpdate(b.Context(), bson.D{{Key: "_id", Value: id}}, change,
			options.FindOneAndUpdate().SetUpsert(true).SetReturnDocument(options.After)).Err()
		if err != nil {
			b.Fatal(err)
		}
	}
	t := trafficOf(p)
	if t.commands != n || t.updates != n {
		b.Fatalf("%d commands and %d updates of %d increments", t.commands, t.updates, n)
	}
	return t.bytes / n
}
