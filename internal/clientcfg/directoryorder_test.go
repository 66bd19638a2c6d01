package clientcfg

import (
	"fmt"
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

// TestClientsInOrder: after changes, whether or not the directory was listed before.
func TestClientsInOrder(t *testing.T) {
	check.Equal(t, "no clients", idsOf(&Directory{}), nil)
	d, known := &Directory{}, &shapes{}
	for round := range 5 {
		e := d.edit(known)
		for i := range 20 {
			e.apply(publicClient(fmt.Sprint((i*7 + round*3) % 50)))
		}
		e.remove(fmt.Sprint(round * 3))
		d = e.directory(0)
		check.Equal(t, "order", idsOf(d), slices.Sorted(d.clients.Keys()))
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
