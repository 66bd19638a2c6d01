package clientcfg

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"oauth-server/internal/check"
)

func publicClient(id string) Record {
	return Record{ID: id, Client: Client{ID: id, Public: true, Grants: []Grant{AuthorizationCode}, RedirectURIs: []string{"https://app.example"}}}
}

func idsOf(d *Directory) (ids []string) {
	for c := range d.After("") {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestOrderFollowsChanges: after few or many changes of any kind, whether or not the directory was
// listed before, and for two directories made from the same one.
func TestOrderFollowsChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	d, known := &Directory{}, &shapes{}
	for round := range 300 {
		from, number := d, random.IntN(8)
		if round%50 == 49 {
			number = mostMoved + random.IntN(20)
		}
		for range 2 {
			e := from.edit(known)
			for range number {
				r := publicClient(fmt.Sprint(random.IntN(3000)))
				switch random.IntN(5) {
				case 0, 1:
					e.remove(r.ID)
					continue
				case 2:
					r.Err = ErrUnreadableClient
				}
				e.apply(r)
			}
			d = e.directory(0)
			if random.IntN(3) == 0 {
				idsOf(d)
			}
		}
		if random.IntN(2) == 0 {
			check.Equal(t, fmt.Sprint("order of round ", round), idsOf(d), slices.Sorted(d.clients.Keys()))
		}
	}
	after := idsOf(d)[10]
	for c := range d.After(after) {
		check.Equal(t, "next", c.ID, idsOf(d)[11])
		break
	}
}

// BenchmarkFirstPage gets the first of 100,000 clients by ID, after one client changed.
func BenchmarkFirstPage(b *testing.B) {
	const number = 100_000
	known := &shapes{}
	e := (&Directory{}).edit(known)
	for i := range number {
		e.apply(publicClient(fmt.Sprintf("client-%06d", i)))
	}
	d := e.directory(0)
	first := func() {
		for range d.After("") {
			return
		}
	}
	first()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := d.edit(known)
		e.apply(publicClient(fmt.Sprint("new-", i)))
		d = e.directory(0)
		first()
	}
}
