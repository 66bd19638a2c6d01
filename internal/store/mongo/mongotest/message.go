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

// decoded returns the whole command or reply, with the documents in it as bson.D.
func decoded(m wire.Message) (whole bson.D, err error) {
	raw, err := m.Document()
	if err != nil {
		return nil, err
	}
	err = bson.Unmarshal(raw, &whole)
	return whole, err
}
