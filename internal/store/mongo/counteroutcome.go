package mongo

import (
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"oauth-server/internal/syncer"
)

// outcome is that of one write of a bulk.
type outcome struct {
	status syncer.Status
	err    error
}

// errGone is the error of a versioned write whose document had expired, so that the upsert created
// a new one. Its condition did not hold, and yet it is counted; sent again under its sequence, it
// meets that sequence.
var errGone = errors.New("mongo: the counter had expired; the write has created it anew")

var errContradiction = errors.New("mongo: the reply has two outcomes of the write")

// counterOutcomes returns the outcome of each write of a bulk. The error is one that concerns more
// than one of them.
//
// A reply names the writes that created a document and those that failed, and has the number of
// writes that matched a document. Only if the three add up to the number of writes, the others were
// applied. Otherwise their outcome is unknown: a bulk that the server broke off, or a reply that is
// not understood, loses no count.
func counterOutcomes(writes []*syncer.Write, result *mongo.BulkWriteResult, bulk mongo.BulkWriteException) ([]outcome, error) {
	outcomes, named := make([]outcome, len(writes)), make([]bool, len(writes))
	accounted := int64(0)
	name := func(i int, o outcome) {
		switch {
		case i < 0 || i >= len(writes):
			return
		case named[i]:
			o = outcome{syncer.Unknown, errContradiction}
		default:
			accounted++
		}
		outcomes[i], named[i] = o, true
	}
	others := outcome{syncer.Applied, nil}
	if e := bulk.WriteConcernError; e != nil { // they were applied, and can still be rolled back
		others = outcome{syncer.Unknown, fmt.Errorf("no majority has confirmed the write: %w", described(e.Code, e.Name, e.Message))}
	}
	if result != nil {
		accounted = result.MatchedCount
		for i := range result.UpsertedIDs {
			created := others
			if i >= 0 && i < int64(len(writes)) && writes[i].Versioned && writes[i].Version != 0 {
				created = outcome{syncer.Unknown, errGone}
			}
			name(int(i), created)
		}
	}
	for _, e := range bulk.WriteErrors {
		name(e.Index, refusal(e.WriteError))
	}
	if accounted != int64(len(writes)) {
		others = outcome{syncer.Unknown, errors.Join(others.err, fmt.Errorf("the reply accounts for %d of %d writes", accounted, len(writes)))}
	}
	for i := range writes {
		if !named[i] {
			outcomes[i] = others
		}
	}
	return outcomes, others.err
}

const duplicateKey = 11000

// refusedForGood has the codes of errors that the same write would cause each time.
// https://www.mongodb.com/docs/manual/reference/error-codes/
var refusedForGood = map[int]bool{
	2:     true, // BadValue: a count beyond 64 bits, too
	9:     true, // FailedToParse
	14:    true, // TypeMismatch: a count that is no number
	22:    true, // InvalidBSON
	28:    true, // PathNotViable: through something that is no document
	40:    true, // ConflictingUpdateOperators
	52:    true, // DollarPrefixedFieldName
	54:    true, // NotSingleValueField
	56:    true, // EmptyFieldName
	57:    true, // DottedFieldName
	66:    true, // ImmutableField
	121:   true, // DocumentValidationFailure
	10334: true, // BSONObjectTooLarge
	17280: true, // KeyTooLong
	17419: true, // the document would become too large
	17420: true, // the same, of a new one
}

// refusal is the outcome of a write that the server reports an error for.
func refusal(e mongo.WriteError) outcome {
	codeName, _ := e.Raw.Lookup("codeName").StringValueOK()
	err := described(e.Code, codeName, e.Message)
	switch {
	case e.Code == duplicateKey:
		return outcome{syncer.Conflict, nil}
	case refusedForGood[e.Code] || failedValidation(codeName, e.Message):
		return outcome{syncer.Rejected, err}
	default: // such as a deadlock: perhaps not applied, but not refused for good
		return outcome{syncer.Unknown, err}
	}
}

// failedValidation recognises a failed validation by its name, because compatible servers have
// other codes for it. The message must begin with it: the rest may quote a username.
func failedValidation(codeName, message string) bool {
	const name = "DocumentValidationFailure"
	return codeName == name || strings.HasPrefix(message, name) || strings.HasPrefix(message, "Document failed validation")
}

// maxMessage is how much of a server's message an error repeats, in bytes.
const maxMessage = 100

// described returns the error of a reply for the log, without what the server quotes of the
// document: the _id of a counter contains a username.
func described(code int, codeName, message string) error {
	if i := strings.IndexAny(message, `{"`); i >= 0 {
		message = message[:i]
	}
	message = strings.TrimSpace(strings.ToValidUTF8(message[:min(len(message), maxMessage)], ""))
	if codeName != "" {
		return fmt.Errorf("mongo: code %d (%s): %s", code, codeName, message)
	}
	return fmt.Errorf("mongo: code %d: %s", code, message)
}
