package mongo

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oauth-server/internal/check"
	"oauth-server/internal/clientcfg"
	"oauth-server/internal/secret"
)

// usualDocs are documents of this release, with everything but a former secret, and with the least.
func usualDocs(tb testing.TB) (full, minimal bson.Raw) {
	tb.Helper()
	at := time.UnixMilli(1_700_000_000_123).UTC()
	encode := func(c *clientcfg.Client) bson.Raw {
		raw, err := bson.Marshal(newClientDoc(c, 7))
		check.OK(tb, err)
		return raw
	}
	return encode(&clientcfg.Client{
			ID: "shop", Name: "The Shöp", SecretDigest: secret.DigestOf("s"), SecretUsed: at, Public: true,
			Grants:       []clientcfg.Grant{clientcfg.AuthorizationCode, clientcfg.ClientCredentials, clientcfg.RefreshToken},
			RedirectURIs: []string{"https://shop.example/cb"}, Scopes: []string{"read", "write"}, Audience: []string{"https://api.example"},
			WithoutPKCE: true, ResourceServer: true, FirstParty: true, Labels: clientcfg.LabelsOf([]string{"team=payments"}),
			CreatedAt: at.Add(time.Hour), Stamp: secret.NewStamp(),
		}),
		encode(&clientcfg.Client{ID: "app", Grants: []clientcfg.Grant{}})
}

// TestUsualClientsAreDecodedWithoutReflection: or a start with many clients is slow again.
func TestUsualClientsAreDecodedWithoutReflection(t *testing.T) {
	t.Parallel()
	full, minimal := usualDocs(t)
	for _, raw := range []bson.Raw{full, minimal} {
		var d clientDoc
		if !d.decodeUsual(string(raw)) {
			t.Errorf("the driver has to decode %v", raw)
		}
		sameAsDriver(t, raw)
	}
}

// oddValues are values that some field or other does not have in a document of this release.
func oddValues() []any {
	return []any{
		nil, true, int32(5), int64(6), 7.5, 8.0, "text", "",
		bson.A{},
		bson.A{"a", "b"},
		bson.A{"a", 1},
		bson.A{"a", nil},
		bson.A{bson.A{"a"}},
		bson.D{},
		bson.D{{Key: "id", Value: 1}},
		bson.D{{Key: "n", Value: int32(3)}},
		bson.D{{Key: "n", Value: int64(3)}},
		bson.D{{Key: "ID", Value: "x"}},
		bson.D{{Key: "id", Value: "x"}, {Key: "other", Value: 1}},
		bson.Binary{Data: []byte("short")},
		bson.Binary{},
		bson.Binary{Subtype: 2, Data: make([]byte, 32)},
		bson.Binary{Subtype: 4, Data: make([]byte, 16)},
		bson.D{{Key: "sha256", Value: make([]byte, 32)}, {Key: "until", Value: time.UnixMilli(5).UTC()}},
		time.UnixMilli(-1), time.UnixMilli(1 << 60),
		bson.Timestamp{T: 5},
		bson.Symbol("s"),
		bson.Undefined{},
		bson.NewObjectID(),
	}
}

// TestOddClientsAreDecodedAsByTheDriver: each field has each odd value, in place of its own and behind it, and under
// names that the driver takes for it.
func TestOddClientsAreDecodedAsByTheDriver(t *testing.T) {
	t.Parallel()
	full, _ := usualDocs(t)
	elements, err := full.Elements()
	check.OK(t, err)
	names := []string{"formerSecret", "unknown"}
	for _, e := range elements {
		names = append(names, e.Key(), strings.ToUpper(e.Key()))
	}
	for _, name := range names {
		var others bson.D
		for _, e := range elements {
			if e.Key() != name {
				others = append(others, bson.E{Key: e.Key(), Value: e.Value()})
			}
		}
		sameAsDriver(t, encoded(t, others))
		for _, value := range oddValues() {
			odd := bson.E{Key: name, Value: value}
			sameAsDriver(t, encoded(t, append(slices.Clip(others), odd)))
			behind := append(slices.Clone(full[:len(full)-1]), encoded(t, bson.D{odd})[4:]...)
			sameAsDriver(t, ofItsLength(behind))
		}
	}
}

// TestDamagedClientsAreDecodedAsByTheDriver, or left to it: a document ends too early, or has another byte.
func TestDamagedClientsAreDecodedAsByTheDriver(t *testing.T) {
	t.Parallel()
	full, _ := usualDocs(t)
	for i := range full {
		usualSameAsDriver(t, full[:i])
		if i >= 4 {
			usualSameAsDriver(t, ofItsLength(slices.Clone(full[:i])))
		}
		for _, b := range []byte{0, 1, 2, 4, 127, 128, 255} {
			damaged := slices.Clone(full)
			damaged[i] = b
			usualSameAsDriver(t, damaged)
		}
	}
	usualSameAsDriver(t, append(slices.Clone(full), 0))
}

func FuzzDecodeClient(f *testing.F) {
	full, minimal := usualDocs(f)
	f.Add([]byte(full))
	f.Add([]byte(minimal))
	f.Fuzz(func(t *testing.T, raw []byte) {
		usualSameAsDriver(t, raw)
		if len(raw) >= 4 { // so that most are not refused for that
			usualSameAsDriver(t, ofItsLength(slices.Clone(raw)))
		}
	})
}

func encoded(t *testing.T, doc bson.D) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(doc)
	check.OK(t, err)
	return raw
}

// ofItsLength makes the length in a document that of the bytes.
func ofItsLength(raw bson.Raw) bson.Raw {
	binary.LittleEndian.PutUint32(raw, uint32(len(raw)))
	return raw
}

// sameAsDriver requires the document and the error of the driver.
func sameAsDriver(t *testing.T, raw bson.Raw) {
	t.Helper()
	var got, want clientDoc
	gotErr, wantErr := got.decode(raw), bson.Unmarshal(raw, &want)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		t.Fatalf("%x: the error is %v, that of the driver %v", []byte(raw), gotErr, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%x (-driver +decode):\n%s", []byte(raw), diff)
	}
}

// usualSameAsDriver is sameAsDriver for what is not left to the driver, which does not return from some malformed
// documents.
func usualSameAsDriver(t *testing.T, raw bson.Raw) {
	t.Helper()
	var d clientDoc
	if d.decodeUsual(string(raw)) {
		sameAsDriver(t, raw)
	}
}

func BenchmarkDecodeClient(b *testing.B) {
	full, _ := usualDocs(b)
	for name, decode := range map[string]func(*clientDoc) error{
		"decode": func(d *clientDoc) error { return d.decode(full) },
		"driver": func(d *clientDoc) error { return bson.Unmarshal(full, d) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var d clientDoc
				check.OK(b, decode(&d))
			}
		})
	}
}
