package mongo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/check"
	"oauth-server/internal/store/exchange"
	"oauth-server/internal/store/mongo/mongotest"
)

// wireLog has the commands on the counters that pass through a proxy, as JSON.
type wireLog struct {
	mu       sync.Mutex
	commands []string
}

func logCommands(p *mongotest.Proxy) *wireLog {
	l := &wireLog{}
	p.Alter(mongotest.Alteration{Request: func(command bson.D) bson.D {
		if command[0].Value == "ratelimits" {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.commands = append(l.commands, commandJSON(command))
		}
		return command
	}})
	return l
}

var (
	long = regexp.MustCompile(`\{"\$numberLong":"(-?\d+)"\}`)
	date = regexp.MustCompile(`\{"\$date":(\d+)L\}`)
)

// commandJSON returns a command with the suffix L for 64-bit numbers and D for dates. It leaves out
// the fields that the driver adds for a session, and the usual read preference.
func commandJSON(command bson.D) string {
	fields := slices.DeleteFunc(slices.Clone(command), func(e bson.E) bool {
		mode, _ := e.Value.(bson.D)
		return slices.Contains([]string{"lsid", "txnNumber", "$clusterTime", "maxTimeMS", "$db"}, e.Key) ||
			e.Key == "$readPreference" && strings.HasPrefix(mongotest.Get[string](mode, "mode"), "primary")
	})
	text, err := bson.MarshalExtJSON(fields, true, false)
	if err != nil {
		return err.Error()
	}
	return date.ReplaceAllString(long.ReplaceAllString(string(text), "${1}L"), "${1}D")
}

// take returns the commands since the last call, ordered by name.
func (l *wireLog) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	commands := l.commands
	l.commands = nil
	slices.Sort(commands)
	return commands
}

// wireWrite is a write by me with sequence 7, and the parts of its statement that depend on its form.
type wireWrite struct {
	write    exchange.Write
	q        string // the condition, besides the _id
	inc, set string
	max      string
	others   string // operators after $max
}

func wireWrites() []wireWrite {
	const (
		sequence  = `"frame":60L,"writers.me":{"$not":{"$gte":7L}},"pruned":{"$not":{"$gte":7L}}`
		asRead    = `"version":2L,"etag":3L`
		unset     = `,"$unset":{"requestCounters.60":"","writers.x":""}`
		increment = `,"requestCounters.120":4L`
	)
	delta := []exchange.FrameCount{{Name: 120, Count: 4}}
	remove := exchange.Removal{Frames: []exchange.FrameCount{{Name: 60, Count: 5}}, Writers: []exchange.WriterSeq{{Writer: "x", Seq: 6}}}
	return []wireWrite{
		{write: exchange.Write{Versioned: true, Delta: delta}, q: `"version":{"$in":[0L,null]},"etag":{"$in":[0L,null]}`, inc: increment},
		{write: exchange.Write{Versioned: true, Version: 2, Etag: 3, Delta: delta, Remove: remove}, q: asRead, inc: increment, others: unset},
		{write: exchange.Write{Versioned: true, Version: 2, Etag: 3, Delta: delta, Rewrite: true}, q: asRead, set: `,"requestCounters":{"120":4L}`},
		{write: exchange.Write{Version: 2, Etag: 3, Delta: delta}, q: sequence, inc: increment},
		{
			write: exchange.Write{Delta: delta, Remove: remove, Pruned: 6}, q: sequence + `,"requestCounters.60":5L,"writers.x":6L`,
			inc: increment, max: `,"pruned":6L`, others: unset,
		},
		{write: exchange.Write{Delta: []exchange.FrameCount{{Name: 120, Count: -4}}}, q: sequence, inc: `,"requestCounters.120":-4L`},
		{write: exchange.Write{}, q: sequence, others: `,"$setOnInsert":{"requestCounters":{}}`},
	}
}

const (
	updateStart = `{"update":"ratelimits","comment":"oauth-server: write counters","ordered":false,"writeConcern":{"w":"majority"},"updates":[`
	findStart   = `{"find":"ratelimits","batchSize":{"$numberInt":"1000"},"comment":"oauth-server: read counters","filter":{"_id":{"$in":[`
	findEnd     = `]}},"readConcern":{"level":"majority"}}`
)

// TestExchangeOnTheWire: an exchange is at most one command of each kind, in the order of the _ids.
// Every write is an upsert with a condition. The server must not stop at an error, a majority
// acknowledges, and reads see what a majority has.
func TestExchangeOnTheWire(t *testing.T) {
	t.Parallel()
	s, _, proxy := throughProxy(t)
	log := logCommands(proxy)
	var items []exchange.Item
	var updates, ids []string
	for i, form := range wireWrites() {
		w := form.write
		w.NewEtag, w.Writer, w.Seq, w.Frame, w.Expire = 9, "me", 7, 60, time.UnixMilli(4_000_000_000_000)
		items = append(items, exchange.Item{ID: exchange.CounterID{ClientID: "shop", Username: fmt.Sprint(i), Limit: "l"}, Write: &w, Read: true})
		id := fmt.Sprintf(`{"clientId":"shop","username":"%d","limit":"l"}`, i)
		ids = append(ids, id)
		updates = append(updates, fmt.Sprintf(`{"q":{"_id":%s,%s},"u":{"$inc":{"version":1L%s},"$set":{"etag":9L,"frame":60L%s},`+
			`"$max":{"expire":4000000000000D,"writers.me":7L%s}%s},"upsert":true}`, id, form.q, form.inc, form.set, form.max, form.others))
	}
	_, err := s.Exchange(t.Context(), items)
	check.OK(t, err)
	check.Equal(t, "commands", log.take(), []string{
		findStart + strings.Join(ids, ",") + findEnd, updateStart + strings.Join(updates, ",") + `]}`,
	})
	for i := range items {
		items[i].Write = nil
	}
	_, err = s.Exchange(t.Context(), items[:1])
	check.OK(t, err)
	check.Equal(t, "a read", log.take(), []string{findStart + ids[0] + findEnd})
}

// TestClientOnTheWire: the counters of a client, or of one of its users, are a range of _ids.
func TestClientOnTheWire(t *testing.T) {
	t.Parallel()
	s, _, proxy := throughProxy(t)
	log := logCommands(proxy)
	for username, ids := range map[*string]string{
		nil:        `{"_id":{"$gte":{"clientId":"shop"},"$lte":{"clientId":"shop","username":{"$maxKey":1}}}}`,
		new("ada"): `{"_id":{"$gte":{"clientId":"shop","username":"ada"},"$lte":{"clientId":"shop","username":"ada","limit":{"$maxKey":1}}}}`,
	} {
		_, err := s.CountersOf(t.Context(), "shop", username, 10)
		check.OK(t, err)
		check.OK(t, s.EraseCounters(t.Context(), "shop", username))
		check.Equal(t, "commands", log.take(), []string{
			`{"delete":"ratelimits","comment":"oauth-server: erase counters","ordered":true,"writeConcern":{"w":"majority"},` +
				`"deletes":[{"q":` + ids + `,"limit":{"$numberInt":"0"}}]}`,
			`{"find":"ratelimits","comment":"oauth-server: read client counters","filter":` + ids + `,"limit":10L,"readConcern":{"level":"majority"}}`,
		})
	}
}

// TestLargestExchangeOnTheWire: the largest exchange is one command of each kind. An exchange that
// is too large sends no command.
func TestLargestExchangeOnTheWire(t *testing.T) {
	t.Parallel()
	s, _, proxy := throughProxy(t)
	log := logCommands(proxy)
	items := make([]exchange.Item, exchange.MaxBatch+1)
	for i := range items {
		items[i] = exchange.Item{ID: exchange.CounterID{ClientID: "shop", Username: fmt.Sprintf("%05d", i)}, Write: aWrite("me", 1, 1), Read: true}
	}
	if _, err := s.Exchange(t.Context(), items); err == nil || len(log.take()) > 0 {
		t.Errorf("too large an exchange: %v", err)
	}
	results, err := s.Exchange(t.Context(), items[:exchange.MaxBatch])
	check.OK(t, err)
	for i, r := range results {
		if r.Status != exchange.Applied || !r.Read {
			t.Fatalf("item %d: %+v", i, r)
		}
	}
	check.Equal(t, "commands", len(log.take()), 2)
}

// TestOnlyWhatIsNeededOnTheWire: an exchange without writes sends no update, one without reads
// sends no find, and an empty one sends nothing.
func TestOnlyWhatIsNeededOnTheWire(t *testing.T) {
	t.Parallel()
	s, _, proxy := throughProxy(t)
	log := logCommands(proxy)
	broken := aWrite("me", 1, 1)
	broken.Writer = "a.b"
	strange := exchange.CounterID{ClientID: "shop", Username: "\xff"}
	for name, test := range map[string]struct {
		item exchange.Item
		sent string
	}{
		"nothing":              {exchange.Item{ID: hotID}, ""},
		"a write":              {exchange.Item{ID: hotID, Write: aWrite("me", 1, 1)}, "update"},
		"a refused write":      {exchange.Item{ID: hotID, Write: broken}, ""},
		"a name that is none":  {exchange.Item{ID: strange, Write: aWrite("me", 1, 1), Read: true}, ""},
		"refused, but read":    {exchange.Item{ID: hotID, Write: broken, Read: true}, "find"},
		"nothing of that name": {exchange.Item{ID: strange, Read: true}, ""},
	} {
		_, err := s.Exchange(t.Context(), []exchange.Item{test.item})
		check.OK(t, err)
		if sent := strings.Join(log.take(), " "); (sent == "") != (test.sent == "") || !strings.HasPrefix(sent, `{"`+test.sent) && sent != "" {
			t.Errorf("%s: sent was %s", name, sent)
		}
	}
}

// TestPrimaryOnTheWire: whatever the URI says, reads go to the primary and both concerns are
// majority. The driver sends a read preference only to a server that can choose, such as the router
// of a sharded cluster.
func TestPrimaryOnTheWire(t *testing.T) {
	router := slices.Concat(bson.D{{Key: "msg", Value: "isdbgrid"}}, greeting)
	proxy := mongotest.NewProxy(t, "mongodb://"+fakeServerThat(t, router, bson.D{{Key: "ok", Value: 1}, {Key: "n", Value: 1}}))
	log := logCommands(proxy)
	client, err := mongo.Connect(clientOptions(proxy.URI + "/?readPreference=nearest&readConcernLevel=local&w=1"))
	check.OK(t, err)
	s := newStore(client, "x")
	defer func() { _ = s.Close() }()
	results, err := s.Exchange(t.Context(), []exchange.Item{{ID: hotID, Write: aWrite("me", 1, 1), Read: true}})
	if err == nil || results[0].Status != exchange.Applied { // the server cannot find
		t.Errorf("got %+v, %v", results, err)
	}
	for _, command := range log.take() {
		if strings.Contains(command, "nearest") || !strings.Contains(command, `{"level":"majority"}`) && !strings.Contains(command, `{"w":"majority"}`) {
			t.Errorf("sent was %s", command)
		}
	}
}

func keyID(k int) exchange.CounterID {
	return exchange.CounterID{ClientID: "shop", Username: fmt.Sprintf("user %d", k)}
}
