package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"oauth-server/internal/check"
)

func marshalled(tb testing.TB, doc bson.D) bson.Raw {
	tb.Helper()
	raw, err := bson.Marshal(doc)
	check.OK(tb, err)
	return raw
}

// message returns an OP_MSG with these bytes after the header. The header has the right length.
func message(flags wiremessage.MsgFlag, payload ...[]byte) Message {
	m := wiremessage.AppendHeader(nil, 0, 7, 3, wiremessage.OpMsg)
	m = append(wiremessage.AppendMsgFlags(m, flags), bytes.Join(payload, nil)...)
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	return m
}

func body(doc []byte) []byte { return append([]byte{0}, doc...) }

func sequence(name string, documents ...[]byte) []byte {
	data := append([]byte(name+"\x00"), bytes.Join(documents, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte{1}, uint32(4+len(data))), data...)
}

// A message reads as it was made, one message after the other.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	sent := []bson.D{{{Key: "find", Value: "clients"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: "shop"}}}}, {{Key: "ping", Value: 1}}}
	var stream bytes.Buffer
	for i, doc := range sent {
		m, err := New(doc, int32(7+i), 3)
		check.OK(t, err)
		stream.Write(m)
	}
	for i, doc := range sent {
		m, err := Read(&stream)
		check.OK(t, err)
		check.Equal(t, "ID", m.ID(), int32(7+i))
		check.Equal(t, "answered ID", binary.LittleEndian.Uint32(m[8:]), 3)
		raw, err := m.Document()
		check.OK(t, err)
		check.Equal(t, "document", raw, marshalled(t, doc))
	}
	if m, err := Read(&stream); m != nil || !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v, %v", m, err)
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	find := marshalled(t, bson.D{{Key: "find", Value: "clients"}})
	greeting := message(0, body(marshalled(t, bson.D{{Key: "isMaster", Value: 1}})))
	binary.LittleEndian.PutUint32(greeting[12:], 2004)
	for name, tc := range map[string]struct {
		m                Message
		name, collection string
	}{
		"with a collection": {message(0, body(find)), "find", "clients"},
		"with a number":     {message(0, body(marshalled(t, bson.D{{Key: "getMore", Value: int64(1)}, {Key: "collection", Value: "clients"}}))), "getMore", ""},
		"behind a sequence": {message(0, sequence("documents", find), body(find)), "find", "clients"},
		"greeting":          {greeting, "", ""},
		"empty":             {message(0, body(marshalled(t, bson.D{}))), "", ""},
		"nothing":           {message(0), "", ""},
	} {
		command, collection := tc.m.Command()
		check.Equal(t, name, [2]string{command, collection}, [2]string{tc.name, tc.collection})
	}
}

// TestDocument: sequences of documents become arrays after the other fields, wherever they are in
// the message.
func TestDocument(t *testing.T) {
	t.Parallel()
	one, two := bson.D{{Key: "q", Value: int32(1)}}, bson.D{}
	update := body(marshalled(t, bson.D{{Key: "update", Value: "x"}}))
	updates := sequence("updates", marshalled(t, one), marshalled(t, two))
	want := marshalled(t, bson.D{{Key: "update", Value: "x"}, {Key: "updates", Value: bson.A{one, two}}, {Key: "none", Value: bson.A{}}})
	for name, m := range map[string]Message{
		"behind the body":   message(0, update, updates, sequence("none")),
		"around the body":   message(0, updates, update, sequence("none")),
		"with a checksum":   message(1, update, updates, sequence("none"), []byte{1, 2, 3, 4}),
		"with unknown bits": message(1<<30, update, updates, sequence("none")),
	} {
		raw, err := m.Document()
		check.OK(t, err)
		check.Equal(t, name, raw, want)
	}
	for name, m := range map[string]Message{
		"no flags":                message(0)[:headerSize],
		"no body":                 message(0, updates),
		"a checksum alone":        message(1, []byte{0, 0, 0, 0}),
		"another kind":            message(0, update, []byte{2}, update[1:]),
		"half a body":             message(0, update[:len(update)-1]),
		"a body of four bytes":    message(0, body([]byte{4, 0, 0, 0})),
		"half a sequence":         message(0, update, updates[:len(updates)-1]),
		"a document in it is cut": message(0, update, sequence("updates", marshalled(t, one)[:9])),
	} {
		if raw, err := m.Document(); err == nil || raw != nil {
			t.Errorf("%s: %v", name, raw)
		}
	}
}

// A header with an impossible length is refused before memory is allocated for it.
func TestLyingHeader(t *testing.T) {
	t.Parallel()
	for _, size := range []uint32{0, headerSize - 1, maxSize + 1, 1 << 31, 1<<32 - 1} {
		m := message(0)
		binary.LittleEndian.PutUint32(m, size)
		_, err := Read(bytes.NewReader(m))
		check.ErrorSays(t, err, "not a MongoDB message")
	}
}

func TestTruncated(t *testing.T) {
	t.Parallel()
	m := message(0, body(marshalled(t, bson.D{{Key: "update", Value: "x"}})))
	for n := range m {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if got, err := Read(bytes.NewReader(m[:n])); got != nil || !errors.Is(err, want) {
			t.Errorf("%d bytes of %d: %v, %v", n, len(m), got, err)
		}
	}
}
