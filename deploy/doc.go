// Package deploy holds no code: beside it are the files to run the server with
// Docker Compose and Kubernetes, and the tests that keep them true.
package deploy
