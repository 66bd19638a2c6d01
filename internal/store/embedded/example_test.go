package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oauth-server/internal/clientcfg"
	"oauth-server/internal/store/embedded"
)

// A second process cannot open the file of a running server, and gets an error at once.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "embedded")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "oauth-server.db")

	server, err := embedded.Open(path, embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = server.Close() }()
	_, err = server.Clients(context.Background(), func(c clientcfg.Record) { fmt.Println("client", c.ID) })
	fmt.Println("clients read:", err)

	_, err = embedded.Open(path, embedded.Options{})
	fmt.Println("in use:", errors.Is(err, embedded.ErrLocked))
	// Output:
	// clients read: <nil>
	// in use: true
}
