package mongotest

import (
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Alterations that make a server of the same protocol differ from MongoDB in one way.
var (
	// OrderedIgnored runs every bulk to its end.
	OrderedIgnored = Alteration{Request: func(command bson.D) bson.D { return With(command, "ordered", false) }}
	// AlwaysOrdered stops every bulk at its first error.
	AlwaysOrdered = Alteration{Request: func(command bson.D) bson.D { return With(command, "ordered", true) }}
	// FieldOrderIgnored treats two embedded _ids as equal if they differ only in the order of their
	// fields.
	FieldOrderIgnored = Alteration{Request: func(command bson.D) bson.D { return inOrder(command).(bson.D) }}
	// SequenceIgnored leaves the writers' sequences out of filters.
	SequenceIgnored = Alteration{Request: EachUpdate(func(update bson.D) bson.D {
		return With(update, "q", slices.DeleteFunc(Get[bson.D](update, "q"), func(e bson.E) bool {
			_, condition := e.Value.(bson.D)
			return condition && strings.HasPrefix(e.Key, "writers.")
		}))
	})}
)

// Refuses returns a server that answers commands of that name with an error.
func Refuses(name string, code int, codeName, message string) Alteration {
	return Alteration{Answer: func(command bson.D) bson.D {
		if command[0].Key != name {
			return nil
		}
		return Refusal(code, codeName, message)
	}}
}

// Refusal returns the reply to a command that fails. It leaves out a code of 0 and an empty name.
func Refusal(code int, codeName, message string) bson.D {
	reply := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: message}}
	if code != 0 {
		reply = append(reply, bson.E{Key: "code", Value: code})
	}
	if codeName != "" {
		reply = append(reply, bson.E{Key: "codeName", Value: codeName})
	}
	return reply
}

// Collision returns a server on which other processes insert the documents of the next upserts,
// between an upsert's search and its insert. It runs others and then refuses each upsert of the
// command, as MongoDB does if the filter has more than the _id. The stand-in needs this because its
// upserts are atomic.
func Collision(others func()) Alteration {
	var once sync.Once
	return Alteration{Answer: func(command bson.D) (answer bson.D) {
		if command[0].Key != "update" {
			return nil
		}
		var errs bson.A
		for i, u := range Get[bson.A](command, "updates") {
			if update, ok := u.(bson.D); ok && Get[bool](update, "upsert") && len(Get[bson.D](update, "q")) > 1 {
				errs = append(errs, bson.D{{Key: "index", Value: i}, {Key: "code", Value: 11000}, {Key: "errmsg", Value: "E11000 duplicate key error"}})
			}
		}
		if len(errs) > 0 {
			once.Do(func() {
				others()
				answer = bson.D{{Key: "n", Value: 0}, {Key: "nModified", Value: 0}, {Key: "writeErrors", Value: errs}, {Key: "ok", Value: 1.0}}
			})
		}
		return answer
	}}
}

// EachUpdate returns a Request that changes every statement of the command "update".
func EachUpdate(change func(update bson.D) bson.D) func(command bson.D) bson.D {
	return func(command bson.D) bson.D {
		if command[0].Key != "update" {
			return command
		}
		updates := bson.A{}
		for _, u := range Get[bson.A](command, "updates") {
			updates = append(updates, change(u.(bson.D))) //nolint:forcetypeassert // of a well-formed command
		}
		return With(command, "updates", updates)
	}
}

// Get returns the field of a document. It is zero if the field is absent or of another type.
func Get[T any](doc bson.D, name string) (value T) {
	for _, e := range doc {
		if e.Key == name {
			value, _ = e.Value.(T)
		}
	}
	return value
}

// With returns a copy of the document with another value in that field, if the document has the
// field.
func With(doc bson.D, name string, value any) bson.D {
	doc = slices.Clone(doc)
	for i := range doc {
		if doc[i].Key == name {
			doc[i].Value = value
		}
	}
	return doc
}

// inOrder puts the fields of every _id into one order.
func inOrder(value any) any {
	switch value := value.(type) {
	case bson.D:
		value = slices.Clone(value)
		if len(value) == 2 && value[0].Key == "username" && value[1].Key == "clientId" {
			slices.Reverse(value)
		}
		for i := range value {
			value[i].Value = inOrder(value[i].Value)
		}
		return value
	case bson.A:
		value = slices.Clone(value)
		for i := range value {
			value[i] = inOrder(value[i])
		}
		return value
	}
	return value
}
