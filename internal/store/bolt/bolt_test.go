package bolt

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path, ok := os.LookupEnv("BOLT_TEST_HOLD"); ok {
		holdForever(path)
	}
	goleak.VerifyTestMain(m)
}

// holdForever runs in the process that holds the file in a test.
func holdForever(path string) {
	if _, err := Open(path, Options{}); err != nil {
		panic(err)
	}
	fmt.Println("open")
	time.AfterFunc(time.Minute, func() { os.Exit(1) })
	select {}
}
