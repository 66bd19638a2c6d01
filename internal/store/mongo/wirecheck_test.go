package mongo

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/syncer"
)

// wireCheck examines one command on the counters. It records everything that could lose or double a
// count on a server that follows the command to the letter.
type wireCheck struct {
	problems []string
	forms    []string // the recognised forms
}

func (c *wireCheck) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *wireCheck) form(name string) { c.forms = append(c.forms, name) }

// checkCommand checks a command. It returns nil if the command does not concern the counters.
func checkCommand(command bson.Raw) *wireCheck {
	name := command.Index(0).Key()
	collection, _ := command.Index(0).Value().StringValueOK()
	if name == "getMore" {
		collection, _ = command.Lookup("collection").StringValueOK()
	}
	if collection != "ratelimits" {
		return nil
	}
	c := &wireCheck{}
	c.form(name)
	c.primary(command)
	switch name {
	case "update":
		c.update(command)
	case "find":
		c.find(command)
	case "delete":
		c.delete(command)
	case "getMore":
		c.fields(command, "getMore", "collection", "batchSize", "comment", "$db")
	default:
		c.problem("a command %s", name)
	}
	return c
}

// sessionFields are the fields that the driver adds if the server has sessions.
var sessionFields = []string{"lsid", "txnNumber", "$clusterTime", "maxTimeMS"}

// fields reports fields other than the known ones.
func (c *wireCheck) fields(doc bson.Raw, known ...string) {
	elements, err := doc.Elements()
	if err != nil {
		c.problem("no sound document: %v", err)
	}
	for _, e := range elements {
		if !slices.Contains(known, e.Key()) && !slices.Contains(sessionFields, e.Key()) && e.Key() != "$readPreference" {
			c.problem("a field %s", e.Key())
		}
	}
}

func (c *wireCheck) primary(command bson.Raw) {
	if v, err := command.LookupErr("$readPreference", "mode"); err == nil && v.StringValue() != "primary" {
		c.problem("read preference %s", v)
	}
}

// is reports a field that is not exactly want.
func (c *wireCheck) is(doc bson.Raw, want any, path ...string) {
	_, value, err := bson.MarshalValue(want)
	got := doc.Lookup(path...)
	if err != nil || !slices.Equal(got.Value, value) {
		c.problem("%s is %s, want %v", strings.Join(path, "."), got, want)
	}
}

func (c *wireCheck) comment(command bson.Raw, operations ...string) {
	text, _ := command.Lookup("comment").StringValueOK()
	operation, ok := strings.CutPrefix(text, "oauth-server: ")
	if !ok || !slices.Contains(operations, operation) {
		c.problem("the comment is %q, want one of %q", text, operations)
	}
}

func (c *wireCheck) update(command bson.Raw) {
	c.fields(command, "update", "ordered", "writeConcern", "comment", "$db", "updates")
	c.is(command, false, "ordered")
	c.is(command, bson.D{{Key: "w", Value: "majority"}}, "writeConcern")
	c.comment(command, "write counters")
	operations := c.list(command.Lookup("updates"))
	if n := len(operations); n < 1 || n > 1000 {
		c.problem("%d operations", n)
	}
	var ids []ratelimit.CounterID
	for _, v := range operations {
		op, ok := v.DocumentOK()
		if !ok {
			c.problem("an operation is %s", v)
			continue
		}
		c.fields(op, "q", "u", "upsert", "multi")
		c.is(op, true, "upsert")
		if multi, err := op.LookupErr("multi"); err == nil && multi.Boolean() {
			c.problem("an operation on many documents")
		}
		q, u := c.document(op.Lookup("q")), c.document(op.Lookup("u"))
		ids = append(ids, c.counterID(q.Lookup("_id")))
		w := c.filter(q)
		c.change(u, w)
	}
	c.ascending(ids)
	if len(operations) > 1 {
		c.form("bulk of many")
	}
	if len(operations) == 1000 {
		c.form("bulk of 1000")
	}
}

func (c *wireCheck) list(v bson.RawValue) (list []bson.RawValue) {
	array, ok := v.ArrayOK()
	if !ok {
		c.problem("%s is no list", v)
		return nil
	}
	list, err := array.Values()
	if err != nil {
		c.problem("a broken list: %v", err)
	}
	return list
}

func (c *wireCheck) document(v bson.RawValue) bson.Raw {
	doc, ok := v.DocumentOK()
	if !ok {
		c.problem("%s is no document", v)
		doc, _ = bson.Marshal(bson.D{})
	}
	return doc
}

// counterID reads an _id. The order of its fields matters.
func (c *wireCheck) counterID(v bson.RawValue) (id ratelimit.CounterID) {
	doc := c.document(v)
	elements, _ := doc.Elements()
	var names []string
	for _, e := range elements {
		text, ok := e.Value().StringValueOK()
		if !ok {
			c.problem("%s in an _id is %s", e.Key(), e.Value())
		}
		switch names = append(names, e.Key()); e.Key() {
		case "clientId":
			id.ClientID = text
		case "username":
			id.Username = text
		case "limit":
			id.Limit = text
		}
	}
	if form := strings.Join(names, " "); form != "clientId username" && form != "clientId username limit" {
		c.problem("an _id of %q", form)
	}
	return id
}

func (c *wireCheck) ascending(ids []ratelimit.CounterID) {
	for i := 1; i < len(ids); i++ {
		if syncer.CompareIDs(ids[i-1], ids[i]) >= 0 {
			c.problem("%v is followed by %v", ids[i-1], ids[i])
		}
	}
}

func (c *wireCheck) find(command bson.Raw) {
	c.is(command, bson.D{{Key: "level", Value: "majority"}}, "readConcern")
	filter := c.document(command.Lookup("filter"))
	in, err := filter.LookupErr("_id", "$in")
	if err != nil {
		c.fields(command, "find", "filter", "limit", "readConcern", "comment", "$db")
		c.comment(command, "read client counters")
		c.rangeOfIDs(filter)
		return
	}
	c.fields(command, "find", "filter", "batchSize", "readConcern", "comment", "$db")
	c.fields(filter, "_id")
	c.comment(command, "read counters")
	values := c.list(in)
	if n := len(values); n < 1 || n > 1000 {
		c.problem("%d _ids", n)
	}
	var ids []ratelimit.CounterID
	for _, v := range values {
		ids = append(ids, c.counterID(v))
	}
	c.ascending(ids)
	if len(values) > 1 {
		c.form("find of many")
	}
}

func (c *wireCheck) delete(command bson.Raw) {
	c.fields(command, "delete", "ordered", "writeConcern", "comment", "$db", "deletes")
	c.is(command, bson.D{{Key: "w", Value: "majority"}}, "writeConcern")
	c.comment(command, "erase counters")
	for _, v := range c.list(command.Lookup("deletes")) {
		c.rangeOfIDs(c.document(c.document(v).Lookup("q")))
	}
}

// rangeOfIDs checks the filter for all counters of a client or of a username.
func (c *wireCheck) rangeOfIDs(filter bson.Raw) {
	c.fields(filter, "_id")
	from, to := c.document(filter.Lookup("_id", "$gte")), c.document(filter.Lookup("_id", "$lte"))
	c.fields(c.document(filter.Lookup("_id")), "$gte", "$lte")
	low, _ := from.Elements()
	high, _ := to.Elements()
	if len(low) < 1 || len(low) > 2 || len(high) != len(low)+1 || high[len(low)].Value().Type != bson.TypeMaxKey {
		c.problem("a range from %s to %s", from, to)
		return
	}
	for i, name := range []string{"clientId", "username", "limit"}[:len(high)] {
		if high[i].Key() != name || i < len(low) && !slices.Equal(low[i], high[i]) {
			c.problem("a range from %s to %s", from, to)
		}
	}
	c.form("range")
}
