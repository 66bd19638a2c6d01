package mongotest

import (
	"encoding/binary"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/store/mongo/wire"
)

// TestDocument: the sequences of a command are arrays of its document.
func TestDocument(t *testing.T) {
	t.Parallel()
	statement := bson.D{{Key: "q", Value: bson.D{{Key: "_id", Value: int32(1)}}}}
	raw, err := bson.Marshal(statement)
	check.OK(t, err)
	update := bson.D{{Key: "update", Value: "x"}, {Key: "ordered", Value: false}}
	m, err := wire.New(update, 1, 0, wire.Sequence{Name: "updates", Documents: []bson.Raw{raw, raw}})
	check.OK(t, err)
	got, err := decoded(m)
	check.OK(t, err)
	check.Equal(t, "command", got, append(update, bson.E{Key: "updates", Value: bson.A{statement, statement}}))

	cut := m[:len(m)-1]
	binary.LittleEndian.PutUint32(cut, uint32(len(cut)))
	_, err = document(cut)
	check.ErrorSays(t, err, "of which there are")

	greeting, err := wire.New(bson.D{{Key: "isMaster", Value: 1}}, 1, 0)
	check.OK(t, err)
	binary.LittleEndian.PutUint32(greeting[12:], 2004)
	if raw, err := document(greeting); raw != nil || err != nil {
		t.Errorf("a greeting of the old form is %v, %v", raw, err)
	}
}

// TestGreetingsHaveAWireVersion: the driver takes a server whose greeting lacks it for one that is too old.
func TestGreetingsHaveAWireVersion(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"hello", "isMaster", "ismaster"} {
		answer := withWireVersion(bson.D{{Key: name, Value: 1}}, bson.D{{Key: "ok", Value: 1.0}})
		check.Equal(t, name, Get[int](answer, "maxWireVersion"), 21)
	}
	own := bson.D{{Key: "maxWireVersion", Value: 8}}
	check.Equal(t, "its own", withWireVersion(bson.D{{Key: "hello", Value: 1}}, own), own)
	ping := bson.D{{Key: "ok", Value: 1.0}}
	check.Equal(t, "no greeting", withWireVersion(bson.D{{Key: "ping", Value: 1}}, ping), ping)
}
