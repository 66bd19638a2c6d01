package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"oauth-server/internal/store/bolt"
)

// A second process cannot open the file of a running server, and gets an error at once.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "bolt")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "oauth-server.db")

	server, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = server.Close() }()
	_, err = server.Now(context.Background())
	fmt.Println("answers:", err)

	_, err = bolt.Open(path, bolt.Options{})
	fmt.Println("in use:", errors.Is(err, bolt.ErrLocked))
	// Output:
	// answers: <nil>
	// in use: true
}
