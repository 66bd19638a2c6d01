package bolt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oauth-server/internal/store/storetest"
)

var target = storetest.Target{
	Location: func(t *testing.T) string {
		t.Helper()
		return filepath.Join(t.TempDir(), "oauth-server.db")
	},
	Open: func(_ context.Context, location string) (storetest.Backend, error) {
		return Open(location, Options{})
	},
	Put: putRecord,
}

func TestMain(m *testing.M) {
	storetest.BackendChild(backendTarget.Open)
	if path, ok := os.LookupEnv("BOLT_TEST_HOLD"); ok {
		holdForever(path)
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) { storetest.Run(t, target) }

// holdForever runs in the process that holds the file in a test.
func holdForever(path string) {
	if _, err := Open(path, Options{}); err != nil {
		panic(err)
	}
	fmt.Println("open")
	time.AfterFunc(time.Minute, func() { os.Exit(1) })
	select {}
}
