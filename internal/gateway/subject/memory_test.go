package subject_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"oauth-server/internal/check"
	"oauth-server/internal/gateway/subject"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// digest returns a digest that is spread like a token's, without the cost of a hash.
func digest(n uint64) (d subject.Digest) {
	rng := rand.NewPCG(n, 7)
	binary.LittleEndian.PutUint64(d[:], rng.Uint64())
	binary.LittleEndian.PutUint64(d[8:], rng.Uint64())
	return d
}

// uuid returns a subject of 36 bytes.
func uuid(n uint64) string {
	return "6e9a1f02-77c1-4b3e-8a55-" + hex.EncodeToString(binary.BigEndian.AppendUint64(nil, n)[2:])
}

// remembered is the entry of a token in the model.
type remembered struct {
	client, subject string
	expires         time.Time
	put             int // number of earlier Puts of other tokens; see model.puts
}

// model is the simplest memory: an unbounded map.
type model struct {
	entries map[uint64]remembered
	puts    int
}

// check compares a result of a memory with this limit with the model. A token may be evicted only
// after as many later Puts.
func (m *model) check(t *testing.T, now time.Time, key uint64, client, got string, ok bool, limit int) {
	t.Helper()
	e, there := m.entries[key]
	switch want := there && e.client == client && now.Before(e.expires); {
	case ok && (!want || got != e.subject):
		t.Fatalf("token %d of %s at %v: got %q, the model has %+v", key, client, now, got, e)
	case !ok && want && m.puts-e.put < limit:
		t.Fatalf("token %d was forgotten after %d later ones of %d", key, m.puts-e.put, limit)
	}
}

// TestAgainstAMap applies the same random operations to a memory and to a map, with enough room and
// with too little.
func TestAgainstAMap(t *testing.T) {
	for _, limit := range []int{1, 7, 100, 5000} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("%d entries, seed %d", limit, seed), func(t *testing.T) {
				walk(t, rand.New(rand.NewPCG(seed, uint64(limit))), limit)
			})
		}
	}
}

func walk(t *testing.T, rng *rand.Rand, limit int) {
	t.Helper()
	memory := subject.NewMemory(limit)
	m, now := model{entries: map[uint64]remembered{}}, noon
	for range 20_000 {
		key, client := rng.Uint64N(500), fmt.Sprintf("client-%d", rng.IntN(3))
		now = now.Add(time.Duration(rng.IntN(3)) * time.Second)
		switch rng.IntN(7) {
		case 0, 1, 2:
			lives := time.Duration(rng.IntN(3600)) * time.Second
			e := remembered{client, strings.Repeat("ü", 1+rng.IntN(127)), now.Add(lives), m.puts + 1}
			memory.Put(now, digest(key), client, e.subject, now.Add(lives))
			if m.puts++; lives == 0 {
				delete(m.entries, key)
				break
			}
			m.entries[key] = e
		default:
			got, ok := memory.Get(now, digest(key), client)
			m.check(t, now, key, client, got, ok, limit)
		}
	}
	if memory.Len() > limit {
		t.Errorf("%d entries of %d", memory.Len(), limit)
	}
}

// TestTheOldestMakesRoom checks the order of evictions.
func TestTheOldestMakesRoom(t *testing.T) {
	memory := subject.NewMemory(3)
	for key := range uint64(3) {
		memory.Put(noon, digest(key), "app", uuid(key), time.Time{})
	}
	memory.Put(noon, digest(0), "app", uuid(0), time.Time{}) // again: now the newest
	memory.Put(noon, digest(3), "app", uuid(3), time.Time{})
	for key, want := range []bool{true, false, true, true} {
		got, ok := memory.Get(noon, digest(uint64(key)), "app")
		check.Equal(t, fmt.Sprintf("token %d is there", key), ok, want)
		if ok {
			check.Equal(t, "its subject", got, uuid(uint64(key)))
		}
	}
}

// TestExpiredPlacesAreUsedAgain checks that a long-lived token stays although a hundred times as
// many short-lived ones are added as there is room for.
func TestExpiredPlacesAreUsedAgain(t *testing.T) {
	memory := subject.NewMemory(1000)
	memory.Put(noon, digest(0), "app", "long", noon.Add(24*time.Hour))
	now := noon
	for key := uint64(1); key < 100_000; key++ {
		if key%100 == 0 {
			now = now.Add(time.Second)
		}
		memory.Put(now, digest(key), "app", uuid(key), now.Add(5*time.Second))
	}
	got, ok := memory.Get(now, digest(0), "app")
	check.Equal(t, "the long-lived is there", ok, true)
	check.Equal(t, "its subject", got, "long")
}

// TestLifetimes checks expiry to the second, and the maximum lifetime.
func TestLifetimes(t *testing.T) {
	for name, c := range map[string]struct {
		expires time.Time
		want    time.Duration // 0: not remembered
	}{
		"as given":  {noon.Add(time.Minute), time.Minute},
		"not given": {time.Time{}, subject.DefaultMaxLifetime},
		"too long":  {noon.Add(1000 * time.Hour), subject.DefaultMaxLifetime},
		"expired":   {noon, 0},
		"long ago":  {time.Unix(-1, 0), 0},
	} {
		t.Run(name, func(t *testing.T) {
			memory := subject.NewMemory(0)
			memory.Put(noon, digest(1), "app", "before", time.Time{})
			memory.Put(noon, digest(1), "app", "u", c.expires)
			_, ok := memory.Get(noon, digest(1), "app")
			check.Equal(t, "it is there at once", ok, c.want > 0)
			_, ok = memory.Get(noon.Add(c.want-time.Second), digest(1), "app")
			check.Equal(t, "it is there a second before", ok, c.want > 0)
			_, ok = memory.Get(noon.Add(c.want), digest(1), "app")
			check.Equal(t, "it is there at the end", ok, false)
			check.Equal(t, "Len", memory.Len(), 0)
		})
	}
}

// TestAnotherClient checks that another client finds nothing, and removes nothing.
func TestAnotherClient(t *testing.T) {
	memory := subject.NewMemory(0)
	memory.Put(noon, digest(1), "app", "u", time.Time{})
	got, ok := memory.Get(noon, digest(1), "other")
	check.Equal(t, "another client's subject", got, "")
	check.Equal(t, "another client finds it", ok, false)
	_, ok = memory.Get(noon, digest(1), "app")
	check.Equal(t, "its own client finds it", ok, true)
}

// TestWhatIsNotRemembered covers the zero digest, and invalid subjects.
func TestWhatIsNotRemembered(t *testing.T) {
	memory := subject.NewMemory(0)
	memory.Put(noon, subject.Digest{}, "app", "u", time.Time{})
	for _, name := range []string{"", " total", " source 192.0.2.1", "a\n", "\xff", strings.Repeat("a", 256)} {
		memory.Put(noon, digest(1), "app", "u", time.Time{})
		memory.Put(noon, digest(1), "app", name, time.Time{})
		_, ok := memory.Get(noon, digest(1), "app")
		check.Equal(t, fmt.Sprintf("%q is remembered", name), ok, false)
	}
	check.Equal(t, "Len", memory.Len(), 0)
}

// TestConcurrently checks that a goroutine finds its own entries, whatever the others do. Run it
// with -race.
func TestConcurrently(t *testing.T) {
	memory := subject.NewMemory(100_000)
	var group sync.WaitGroup
	for worker := range uint64(8) {
		group.Go(func() {
			client := fmt.Sprint("client-", worker)
			for i := range uint64(2000) {
				old, key := digest(worker<<32|i), digest(worker<<32|(i+1))
				memory.Put(noon, key, client, uuid(i), time.Time{})
				memory.Put(noon, old, client, "", time.Time{}) // removes it
				if got, ok := memory.Get(noon, key, client); !ok || got != uuid(i) {
					t.Errorf("%s: got %q, %v", client, got, ok)
				}
				memory.Get(noon, digest((worker+1)%8<<32|i), client)
			}
			_ = memory.Len()
		})
	}
	group.Wait()
	check.Equal(t, "Len", memory.Len(), 8)
}

// TestContention puts, gets and removes the same few tokens from many goroutines, in a memory that
// is always full. A found subject always belongs to the token.
func TestContention(t *testing.T) {
	memory := subject.NewMemory(50)
	var group sync.WaitGroup
	for worker := range uint64(8) {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(worker, 1))
			for range 5000 {
				key, now := rng.Uint64N(100), noon.Add(time.Duration(rng.IntN(10))*time.Second)
				want := strings.Repeat(uuid(key), 1+int(key%7))
				memory.Put(now, digest(key), "app", want, now.Add(5*time.Second))
				if got, ok := memory.Get(now, digest(key), "app"); ok && got != want {
					t.Errorf("token %d: %q", key, got)
				}
				memory.Put(now, digest(rng.Uint64N(100)), "app", "", time.Time{}) // removes it
			}
		})
	}
	group.Wait()
}

// TestBytes checks the memory that tokens take, each with its own UUID.
func TestBytes(t *testing.T) {
	const tokens = 200_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	memory := subject.NewMemory(0)
	for key := range uint64(tokens) {
		memory.Put(noon, digest(key), "app", uuid(key), time.Time{})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (after.HeapAlloc - before.HeapAlloc) / uint64(memory.Len()); each > 120 {
		t.Errorf("%d bytes per token", each)
	}
}
