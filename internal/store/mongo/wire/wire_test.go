package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
)

func marshalled(tb testing.TB, doc bson.D) bson.Raw {
	tb.Helper()
	raw, err := bson.Marshal(doc)
	check.OK(tb, err)
	return raw
}

// message is an OP_MSG of these bytes behind the header. Its length is theirs.
func message(flags uint32, payload ...[]byte) Message {
	le := binary.LittleEndian
	m := le.AppendUint32(make([]byte, 12, 64), opMsg)
	m = append(le.AppendUint32(m, flags), bytes.Join(payload, nil)...)
	le.PutUint32(m, uint32(len(m)))
	return m
}

func body(doc []byte) []byte { return append([]byte{0}, doc...) }

func sequence(name string, documents ...[]byte) []byte {
	data := append([]byte(name+"\x00"), bytes.Join(documents, nil)...)
	return append(binary.LittleEndian.AppendUint32([]byte{1}, uint32(4+len(data))), data...)
}

// What is made is read as it was, one message after the other.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	one, two := marshalled(t, bson.D{{Key: "q", Value: 1}}), marshalled(t, bson.D{{Key: "q", Value: "x"}})
	sent := []struct {
		name      string
		command   bson.D
		sequences []Sequence
	}{
		{"find", bson.D{{Key: "find", Value: "clients"}, {Key: "filter", Value: bson.D{{Key: "_id", Value: "shop"}}}}, nil},
		{"bulkWrite", bson.D{{Key: "bulkWrite", Value: 1}}, []Sequence{{"ops", []bson.Raw{one, two}}, {"nsInfo", []bson.Raw{two}}}},
		{"ping", bson.D{{Key: "ping", Value: 1}}, nil},
	}
	var stream bytes.Buffer
	for i, s := range sent {
		m, err := New(s.command, uint32(7+i), 3, s.sequences...)
		check.OK(t, err)
		stream.Write(m)
	}
	for i, s := range sent {
		m, err := Read(&stream)
		check.OK(t, err)
		check.Equal(t, "ID", m.ID(), uint32(7+i))
		check.Equal(t, "answered ID", binary.LittleEndian.Uint32(m[8:]), 3)
		name, _ := m.Command()
		check.Equal(t, "command", name, s.name)
		raw, sequences, err := m.Contents()
		check.OK(t, err)
		check.Equal(t, "body", raw, marshalled(t, s.command))
		check.Equal(t, "sequences", sequences, s.sequences)
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
		"with a collection":    {message(0, body(find)), "find", "clients"},
		"with a number":        {message(0, body(marshalled(t, bson.D{{Key: "getMore", Value: int64(1)}, {Key: "collection", Value: "clients"}}))), "getMore", ""},
		"behind a sequence":    {message(0, sequence("documents", find), body(find)), "find", "clients"},
		"before a broken rest": {message(0, body(find), []byte{1, 255}), "find", "clients"},
		"greeting":             {greeting, "", ""},
		"empty":                {message(0, body(marshalled(t, bson.D{}))), "", ""},
		"nothing":              {message(0), "", ""},
		"broken body":          {message(0, body(find)[:len(find)-3]), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command, collection := tc.m.Command()
			check.Equal(t, "command and collection", [2]string{command, collection}, [2]string{tc.name, tc.collection})
		})
	}
}

func TestSequences(t *testing.T) {
	t.Parallel()
	update, one, two := marshalled(t, bson.D{{Key: "update", Value: "x"}}), marshalled(t, bson.D{{Key: "q", Value: 1}}), marshalled(t, bson.D{})
	want := []Sequence{{"updates", []bson.Raw{one, two, one}}, {"none", nil}}
	updates, none, checksum := sequence("updates", one, two, one), sequence("none"), []byte{1, 2, 3, 4}
	for name, m := range map[string]Message{
		"behind the body":   message(0, body(update), updates, none),
		"around the body":   message(0, updates, body(update), none),
		"with a checksum":   message(1, body(update), updates, none, checksum),
		"with unknown bits": message(1<<30, body(update), updates, none),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Read(bytes.NewReader(m))
			check.OK(t, err)
			raw, sequences, err := m.Contents()
			check.OK(t, err)
			check.Equal(t, "body", raw, update)
			check.Equal(t, "sequences", sequences, want)
		})
	}
}

// A header whose length is no message's is refused before anything is allocated for it.
func TestLyingHeader(t *testing.T) {
	t.Parallel()
	for _, size := range []uint32{0, headerSize - 1, maxSize + 1, 1 << 31, 1<<32 - 1} {
		m := message(0, body(marshalled(t, bson.D{})))
		binary.LittleEndian.PutUint32(m, size)
		_, err := Read(bytes.NewReader(m))
		check.ErrorSays(t, err, "no message of MongoDB's protocol")
	}
}

// A message that is cut off anywhere is an error; so is one whose header says that it ends there, except between
// two sections.
func TestTruncated(t *testing.T) {
	t.Parallel()
	first := body(marshalled(t, bson.D{{Key: "update", Value: "x"}}))
	m := message(0, first, sequence("updates", marshalled(t, bson.D{{Key: "q", Value: 1}})))
	for n := range m {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if got, err := Read(bytes.NewReader(m[:n])); got != nil || !errors.Is(err, want) {
			t.Errorf("%d bytes of %d: %v, %v", n, len(m), got, err)
		}
		if n < headerSize {
			continue
		}
		short := bytes.Clone(m[:n])
		binary.LittleEndian.PutUint32(short, uint32(n))
		read, err := Read(bytes.NewReader(short))
		check.OK(t, err)
		_, _, err = read.Contents()
		if whole := n == headerSize+flagsSize+len(first); whole != (err == nil) {
			t.Errorf("a message of %d bytes of %d: %v", n, len(m), err)
		}
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	empty := marshalled(t, bson.D{})
	length := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	lying := func(n uint32) []byte { return append(length(n), 0) } // instead of an empty document
	other := message(0, body(empty))
	binary.LittleEndian.PutUint32(other[12:], 2012)
	for name, tc := range map[string]struct {
		m    Message
		says string
	}{
		"another opcode":              {other, "opcode 2012"},
		"no flags":                    {message(0)[:headerSize], "without flags"},
		"no checksum":                 {message(1, []byte{0}), "without its checksum"},
		"no body":                     {message(0, sequence("x", empty)), "without a body"},
		"a checksum alone":            {message(1, length(0)), "without a body"},
		"two bodies":                  {message(0, body(empty), body(empty)), "two bodies"},
		"another kind":                {message(0, body(empty), []byte{2}, empty), "of kind 2"},
		"a kind alone":                {message(0, []byte{0}), "0 bytes"},
		"a body of no length":         {message(0, body(lying(0))), "length of 0 bytes"},
		"a body of its length alone":  {message(0, body(lying(4))), "length of 4 bytes"},
		"a body too long":             {message(0, body(lying(6))), "length of 6 bytes, of which there are 5"},
		"a body with a negative size": {message(0, body(lying(1<<32-1))), "length of 4294967295 bytes"},
		"a sequence without a name":   {message(0, []byte{1}, length(5), []byte("x"), body(empty)), "without a name"},
		"a document of no length":     {message(0, body(empty), sequence("x", lying(0))), "length of 0 bytes"},
		"a document too long":         {message(0, body(empty), sequence("x", empty, lying(6))), "of which there are 5"},
		"half a document":             {message(0, body(empty), sequence("x", empty, empty[:3])), "3 bytes, which are no document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, sequences, err := tc.m.Contents()
			check.ErrorSays(t, err, tc.says)
			if raw != nil || sequences != nil {
				t.Errorf("it has the contents %v, %v", raw, sequences)
			}
		})
	}
}

// Whatever is sent, every byte of what is read as a message is in its contents, or is an error.
func FuzzRead(f *testing.F) {
	update, one := marshalled(f, bson.D{{Key: "update", Value: "x"}}), marshalled(f, bson.D{{Key: "q", Value: 1}})
	f.Add([]byte(message(0, body(update), sequence("updates", one, one))))
	f.Add([]byte(message(1, body(update), []byte{1, 2, 3, 4})))
	f.Add([]byte(message(0, body([]byte{0, 0, 0, 0, 0}))))
	f.Add([]byte(message(0, body(update), sequence("updates", []byte{0, 0, 0, 0, 0}))))
	f.Fuzz(func(t *testing.T, sent []byte) {
		stream := bytes.NewReader(sent)
		m, err := Read(stream)
		if err != nil {
			return
		}
		check.Equal(t, "message", []byte(m), sent[:len(sent)-stream.Len()])
		name, collection := m.Command()
		raw, sequences, err := m.Contents()
		if err != nil {
			return
		}
		if first, _ := raw.IndexErr(0); len(first) > 0 && name != first.Key() || len(name)+len(collection) > len(raw) {
			t.Errorf("the command %q of %q begins with %v", name, collection, first)
		}
		size := headerSize + flagsSize + 1 + len(raw)
		if m[headerSize]&1 != 0 {
			size += 4
		}
		for _, s := range sequences {
			size += len(sequence(s.Name))
			for _, d := range s.Documents {
				size += len(d)
			}
		}
		check.Equal(t, "bytes in the contents", size, len(m))
	})
}
