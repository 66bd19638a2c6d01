package mongotest

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/store/mongo/wire"
)

// commandName is empty for a greeting of the old form.
func commandName(m wire.Message) string {
	name, _ := m.Command()
	return name
}

// document returns the whole command. The sequences of documents that the message carries are
// arrays in it, behind the other fields. It is nil for a greeting of the old form.
func document(m wire.Message) (bson.Raw, error) {
	if commandName(m) == "" {
		return nil, nil
	}
	body, sequences, err := m.Contents()
	if err != nil {
		return nil, err
	}
	fields, err := body.Elements()
	if err != nil {
		return nil, err
	}
	var whole bson.D
	for _, f := range fields {
		whole = append(whole, bson.E{Key: f.Key(), Value: f.Value()})
	}
	for _, s := range sequences {
		whole = append(whole, bson.E{Key: s.Name, Value: s.Documents})
	}
	return bson.Marshal(whole)
}

// decoded returns the whole command or reply, with the documents in it as bson.D.
func decoded(m wire.Message) (whole bson.D, err error) {
	raw, err := document(m)
	if err != nil {
		return nil, err
	}
	return whole, bson.Unmarshal(raw, &whole)
}
