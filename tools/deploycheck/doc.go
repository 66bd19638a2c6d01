// Package deploycheck holds no code but tests: they read the files to run the
// server with Docker Compose and Kubernetes with the code that reads them in
// earnest, which is Docker Compose's loader, the types of Kubernetes and the
// server's own configuration.
package deploycheck
