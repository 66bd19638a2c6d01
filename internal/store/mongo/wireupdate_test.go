package mongo

import (
	"regexp"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// wireWrite is the part of a write that its filter shows.
type wireWrite struct {
	versioned bool
	writer    string // prefixed with "writers."; only for an unversioned write
	seq       int64
	frame     int64
	equal     []string // paths of removals with values that are part of the condition
}

var (
	writerPath = regexp.MustCompile(`^writers\.[a-z0-9]+$`)
	framePath  = regexp.MustCompile(`^requestCounters\.(0|[1-9][0-9]*)$`)
)

// filter recognises the two forms of condition.
func (c *wireCheck) filter(q bson.Raw) (w wireWrite) {
	elements, err := q.Elements()
	if err != nil || len(elements) < 3 || elements[0].Key() != "_id" {
		c.problem("a filter %s", q)
		return w
	}
	if elements[1].Key() == "version" {
		c.form("versioned")
		w.versioned = true
		if len(elements) != 3 || elements[2].Key() != "etag" {
			c.problem("a versioned filter %s", q)
		}
		if c.longOrAbsent(elements[1].Value()) == 0 {
			c.form("versioned, no document")
		}
		c.longOrAbsent(elements[2].Value())
		return w
	}
	c.form("unversioned")
	if len(elements) < 4 || elements[1].Key() != "frame" || !writerPath.MatchString(elements[2].Key()) || elements[3].Key() != "pruned" {
		c.problem("an unversioned filter %s", q)
		return w
	}
	w.frame, w.writer, w.seq = c.long(elements[1].Value()), elements[2].Key(), c.below(elements[2].Value())
	if c.below(elements[3].Value()) != w.seq || w.seq <= 0 || w.frame <= 0 {
		c.problem("a filter with two sequences, or without: %s", q)
	}
	for _, e := range elements[4:] {
		if !framePath.MatchString(e.Key()) && !writerPath.MatchString(e.Key()) || e.Key() == w.writer {
			c.problem("a condition on %s", e.Key())
		}
		c.long(e.Value())
		w.equal = append(w.equal, e.Key())
		c.form("removes " + strings.SplitN(e.Key(), ".", 2)[0])
	}
	return w
}

// longOrAbsent returns a number, or 0 if the condition also matches an absent field.
func (c *wireCheck) longOrAbsent(v bson.RawValue) int64 {
	if either, ok := v.DocumentOK(); ok && either.String() == `{"$in": [{"$numberLong":"0"},null]}` {
		return 0
	}
	n := c.long(v)
	if n == 0 {
		c.problem("0 is no value of a field")
	}
	return n
}

func (c *wireCheck) long(v bson.RawValue) int64 {
	n, ok := v.Int64OK()
	if !ok {
		c.problem("%s is no 64-bit number", v)
	}
	return n
}

// below reads {$not: {$gte: n}}.
func (c *wireCheck) below(v bson.RawValue) int64 {
	doc := c.document(v)
	inner := c.document(doc.Lookup("$not"))
	c.fields(doc, "$not")
	c.fields(inner, "$gte")
	return c.long(inner.Lookup("$gte"))
}

// change checks the update of a write, field by field.
func (c *wireCheck) change(u bson.Raw, w wireWrite) {
	c.fields(u, "$inc", "$set", "$max", "$unset", "$setOnInsert")
	var paths, unset []string
	operators, _ := u.Elements()
	for _, op := range operators {
		doc := c.document(op.Value())
		fields, _ := doc.Elements()
		if len(fields) == 0 {
			c.problem("an empty %s", op.Key())
		}
		for _, e := range fields {
			paths = append(paths, e.Key())
			c.operand(op.Key(), e, w)
			if op.Key() == "$unset" {
				unset = append(unset, e.Key())
			}
		}
	}
	for i, a := range paths {
		for _, b := range paths[i+1:] {
			if a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(b, a+".") {
				c.problem("two operators on %s and %s", a, b)
			}
		}
	}
	if !w.versioned && !slices.Equal(unset, w.equal) {
		c.problem("removes %q on condition of %q", unset, w.equal)
	}
	for _, name := range []string{"etag", "frame"} {
		c.long(u.Lookup("$set", name))
	}
	if !w.versioned && (c.long(u.Lookup("$max", w.writer)) != w.seq || c.long(u.Lookup("$set", "frame")) != w.frame) {
		c.problem("sets other values than the condition is on: %s", u)
	}
	if !slices.ContainsFunc(paths, writerPath.MatchString) {
		c.problem("raises no sequence")
	}
	c.is(u, int64(1), "$inc", "version")
	if u.Lookup("$max", "expire").Type != bson.TypeDateTime {
		c.problem("raises no expire")
	}
}

// operand checks one field of one operator.
func (c *wireCheck) operand(operator string, e bson.RawElement, w wireWrite) {
	name := e.Key()
	isFrame, isWriter := framePath.MatchString(name), writerPath.MatchString(name)
	ok := false
	switch operator {
	case "$inc":
		ok = name == "version" || isFrame
		if c.long(e.Value()) < 0 {
			c.form("gives back")
		}
	case "$set":
		ok = name == "etag" || name == "frame" || name == "requestCounters" && w.versioned
		if name == "requestCounters" {
			c.form("rewrite")
			counts, _ := c.document(e.Value()).Elements()
			for _, f := range counts {
				c.long(f.Value())
				ok = ok && framePath.MatchString("requestCounters."+f.Key())
			}
		}
	case "$max":
		ok = name == "expire" || (name == "pruned" || isWriter) && c.long(e.Value()) > 0
		if name == "pruned" {
			c.form("prunes")
		}
	case "$unset":
		ok = isFrame || isWriter && name != w.writer
	case "$setOnInsert":
		ok = name == "requestCounters" && len(c.document(e.Value())) == 5 // empty
		c.form("counts nothing")
	}
	if !ok {
		c.problem("%s of %s", operator, e)
	}
}
