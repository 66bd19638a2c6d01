package mongotest

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
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
