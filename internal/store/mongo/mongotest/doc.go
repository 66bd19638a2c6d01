// Package mongotest finds a MongoDB server for tests: the one at MONGODB_TEST_URI, or a container
// of mongo:8 where Docker answers. Without either a test is skipped and says so; with CI=true that
// is a failure.
//
//	uri, database := mongotest.Database(t) // fresh, dropped when the test ends
//
// The server of MONGODB_TEST_URI may be mongo-java-server (started by .ci/mongo-test-server). A
// test of what that one lacks calls [Real].
package mongotest
