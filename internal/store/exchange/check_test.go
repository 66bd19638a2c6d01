package exchange_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oauth-server/internal/ratelimit"
	"oauth-server/internal/store/exchange"
)

func TestCheckItems(t *testing.T) {
	id := func(client, user, limit string) exchange.Item {
		return exchange.Item{ID: ratelimit.CounterID{ClientID: client, Username: user, Limit: limit}}
	}
	many := make([]exchange.Item, exchange.MaxBatch+1)
	for i := range many {
		many[i] = id(fmt.Sprintf("%06d", i), "", "")
	}
	for _, test := range []struct {
		name  string
		items []exchange.Item
		says  string // empty: nothing is wrong
	}{
		{"none", nil, ""},
		{"one", many[:1], ""},
		{"as many as allowed", many[:exchange.MaxBatch], ""},
		{"one too many", many, "1001 items"},
		{"client, then user, then limit", []exchange.Item{
			id("a", "", ""), id("a", "", "x"), id("a", "b", ""), id("a", "b", "x"), id("a", "b\x00", ""), id("a", "ba", ""), id("a\x00", "", ""), id("ab", "", ""),
		}, ""},
		{"twice the same", []exchange.Item{id("a", "", ""), id("b", "u", "l"), id("b", "u", "l")}, "items 1 and 2"},
		{"clients in disorder", []exchange.Item{id("b", "", ""), id("a", "", "")}, "items 0 and 1"},
		{"users in disorder", []exchange.Item{id("a", "c", ""), id("a", "b", "")}, "items 0 and 1"},
		{"limits in disorder", []exchange.Item{id("a", "b", "x"), id("a", "b", "")}, "items 0 and 1"},
	} {
		t.Run(test.name, func(t *testing.T) { says(t, exchange.CheckItems(test.items), test.says) })
	}
}

func says(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestCheck(t *testing.T) {
	frames := func(names ...int64) (list []ratelimit.FrameCount) {
		for _, name := range names {
			list = append(list, ratelimit.FrameCount{Name: name, Count: 1})
		}
		return list
	}
	writers := func(names ...string) (list []exchange.WriterSeq) {
		for _, name := range names {
			list = append(list, exchange.WriterSeq{Writer: name, Seq: 1})
		}
		return list
	}
	for _, test := range []struct {
		name   string
		change func(w *exchange.Write)
		says   string // empty: nothing is wrong
	}{
		{"unversioned", func(*exchange.Write) {}, ""},
		{"nothing counted", func(w *exchange.Write) { w.Delta, w.Remove = nil, exchange.Removal{} }, ""},
		{"counts given back", func(w *exchange.Write) { w.Delta[0].Count = -3 }, ""},
		{"versioned", func(w *exchange.Write) { w.Versioned, w.Version, w.Etag = true, 4, 5 }, ""},
		{"rewrite", func(w *exchange.Write) { w.Versioned, w.Rewrite, w.Remove.Frames = true, true, nil }, ""},
		{"rewrite of nothing", func(w *exchange.Write) {
			w.Versioned, w.Rewrite, w.Remove.Frames, w.Delta = true, true, nil, nil
		}, ""},
		{"etag 0", func(w *exchange.Write) { w.NewEtag = 0 }, "etag is 0"},
		{"sequence 0", func(w *exchange.Write) { w.Seq = 0 }, "sequence is 0"},
		{"sequence below 0", func(w *exchange.Write) { w.Seq = -1 }, "sequence is -1"},
		{"frame 0", func(w *exchange.Write) { w.Frame = 0 }, "frames is 0 ms"},
		{"pruned below 0", func(w *exchange.Write) { w.Pruned = -1 }, "pruned sequence is -1"},
		{"rewrite, unversioned", func(w *exchange.Write) { w.Rewrite, w.Remove.Frames = true, nil }, "not versioned"},
		{"rewrite that removes", func(w *exchange.Write) { w.Versioned, w.Rewrite = true, true }, "removes frames"},
		{"a frame counted twice", func(w *exchange.Write) { w.Delta = frames(3, 4, 3) }, "frame 3 is named twice"},
		{"a frame removed twice", func(w *exchange.Write) { w.Remove.Frames = frames(1, 1) }, "frame 1 is named twice"},
		{"a frame counted and removed", func(w *exchange.Write) { w.Delta = frames(1) }, "frame 1 is named twice"},
		{"a frame below 0", func(w *exchange.Write) { w.Delta = frames(-60) }, "a frame is named -60"},
		{"no writer", func(w *exchange.Write) { w.Writer = "" }, `"" is not a writer name`},
		{"a writer like a path", func(w *exchange.Write) { w.Writer = "a.b" }, `"a.b" is not a writer name`},
		{"a writer like an operator", func(w *exchange.Write) { w.Writer = "$a" }, `"$a" is not a writer name`},
		{"a writer in capitals", func(w *exchange.Write) { w.Writer = "A" }, `"A" is not a writer name`},
		{"a removed one like a path", func(w *exchange.Write) { w.Remove.Writers = writers("a.b") }, `"a.b" is not a writer name`},
		{"removes itself", func(w *exchange.Write) { w.Remove.Writers = writers("me") }, "writer me is named twice"},
		{"removes one twice", func(w *exchange.Write) { w.Remove.Writers = writers("a", "a") }, "writer a is named twice"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := exchange.Write{
				NewEtag: 1, Writer: "me", Seq: 1, Frame: 60_000, Delta: frames(2, 3), Expire: time.Now(),
				Remove: exchange.Removal{Frames: frames(0, 1), Writers: writers("a", "b2")},
			}
			test.change(&w)
			says(t, w.Check(), test.says)
		})
	}
}
