package migrations

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

// refusals has the errors by which servers that speak MongoDB's protocol refuse what they do not
// implement, by code and name: a keyword of $jsonSchema, validators as a whole, the command. Some
// servers send only one of the two. Every other error (a missing right, no such collection) stops
// the migration, because an operator can do something about it.
var refusals = map[int32]string{
	9:   "FailedToParse",
	59:  "CommandNotFound",
	115: "CommandNotSupported",
}

// notOffered reports whether the error is the answer of a server that does not implement the
// command or an option of it, and returns the reason for operators.
func notOffered(err error) (reason string, ok bool) {
	var answer mongo.CommandError
	if !errors.As(err, &answer) {
		return "", false
	}
	for code, name := range refusals {
		if answer.Code == code || answer.Name == name {
			message := strings.Join(strings.Fields(answer.Message), " ")
			return fmt.Sprintf("%s, code %d: %s", name, code, message), true
		}
	}
	return "", false
}

// lack is one optional command that the server refused.
type lack struct{ feature, migration, reason string }

// feature names what a server lacks that refuses the command.
func (c Command) feature() string {
	for _, e := range c.Run {
		if e.Key == "validator" {
			return "validators"
		}
	}
	return c.Run[0].Key
}

// sentences returns one sentence for each feature, with the reason of the first refusal.
func sentences(lacking []lack) (list []string) {
	var features []string
	for _, l := range lacking {
		if !slices.Contains(features, l.feature) {
			features = append(features, l.feature)
		}
	}
	for _, feature := range features {
		var reason string
		var names []string
		for _, l := range lacking {
			if l.feature != feature {
				continue
			}
			if reason == "" {
				reason = l.reason
			}
			if !slices.Contains(names, l.migration) {
				names = append(names, l.migration)
			}
		}
		list = append(list, fmt.Sprintf("the server does not offer %s (%s), so the database does without: %s", feature, reason, strings.Join(names, ", ")))
	}
	return list
}
