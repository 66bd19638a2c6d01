// Package mongotest finds a MongoDB server for tests: the server at MONGODB_TEST_URI, or a
// container of mongo:8 if Docker is available. Without either, a test is skipped with a message.
// With CI=true it fails.
//
//	uri, database := mongotest.Database(t) // fresh, dropped when the test ends
//
// The server at MONGODB_TEST_URI may be mongo-java-server (started by .ci/mongo-test-server). Tests
// that need more than it supports call [Real].
package mongotest
