package mongotest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oauth-server/internal/secret"
)

// image is the image of the container.
const image = "mongo:8"

// URI returns the connection string of a server, or skips the test.
func URI(tb testing.TB) string {
	tb.Helper()
	if uri := os.Getenv("MONGODB_TEST_URI"); uri != "" {
		return uri
	}
	uri, err := container()
	if err == nil {
		return uri
	}
	reason := fmt.Sprintf("no MongoDB: MONGODB_TEST_URI is not set (export MONGODB_TEST_URI=$(.ci/mongo-test-server)) and Docker does not answer: %v", err)
	if os.Getenv("CI") == "true" {
		tb.Fatal(reason)
	}
	tb.Skip(reason)
	return ""
}

// Database returns the connection string of a server and the name of a new database on it, which is
// dropped when the test ends.
func Database(tb testing.TB) (uri, database string) {
	tb.Helper()
	uri = URI(tb)
	name := "test_" + strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(secret.ID()))
	tb.Cleanup(func() {
		client := Connect(tb, uri)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second) //nolint:forbidigo // the context of the test has ended
		defer cancel()
		if err := client.Database(name).Drop(ctx); err != nil {
			tb.Errorf("drop %s: %v", name, err)
		}
	})
	return uri, name
}

// Connect returns a client of the driver, which is closed when the test ends.
func Connect(tb testing.TB, uri string) *mongo.Client {
	tb.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(5 * time.Second))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Disconnect(context.Background()) }) //nolint:forbidigo // the context of the test has ended
	return client
}

// Real returns the connection string of a real MongoDB replica set, or skips the test. lacking
// names, for the message, the feature that the other server lacks.
func Real(t *testing.T, lacking string) string {
	t.Helper()
	uri := URI(t)
	var hello struct {
		SetName string `bson:"setName"`
	}
	err := Connect(t, uri).Database("admin").RunCommand(t.Context(), bson.D{{Key: "hello", Value: 1}}).Decode(&hello)
	if err != nil || hello.SetName == "" {
		t.Skipf("the server at %s is no MongoDB replica set and has no %s; the run with testcontainers (mongo:8) covers it", uri, lacking)
	}
	return uri
}

// container starts one container for all tests of the process. testcontainers removes it after the
// process has ended.
var container = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) //nolint:forbidigo // shared by tests
	defer cancel()
	if err := dockerAnswers(ctx); err != nil {
		return "", err
	}
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithCmd("mongod", "--replSet", "rs0", "--bind_ip_all", "--setParameter", "ttlMonitorSleepSecs=1", "--setParameter", "enableTestCommands=1"),
		testcontainers.WithExposedPorts("27017/tcp"),
		testcontainers.WithWaitStrategy(wait.ForLog("Waiting for connections")),
	)
	if err != nil {
		return "", err
	}
	const initiate = `rs.initiate({_id: "rs0", members: [{_id: 0, host: "127.0.0.1:27017"}]});
		while (!db.hello().isWritablePrimary) sleep(50)`
	code, _, err := c.Exec(ctx, []string{"mongosh", "--quiet", "--eval", initiate})
	if err == nil && code != 0 {
		err = fmt.Errorf("mongosh exits with status %d", code)
	}
	if err != nil {
		return "", fmt.Errorf("initiate the replica set: %w", err)
	}
	address, err := c.PortEndpoint(ctx, "27017/tcp", "mongodb")
	return address + "/?directConnection=true", err
})

func dockerAnswers(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	defer func() {
		if r := recover(); r != nil { // testcontainers panics if there is no Docker at all
			err = fmt.Errorf("%v", r)
		}
	}()
	provider, err := testcontainers.ProviderDocker.GetProvider()
	if err != nil {
		return err
	}
	defer func() { _ = provider.Close() }()
	return provider.Health(ctx)
}
