// Package deploycheck tests the deployment files: docker-compose.yml, Dockerfile
// and deploy/. It parses them with the code that reads them in production: the
// loader of Docker Compose, the types of Kubernetes and the server's own
// configuration. It has tests only.
package deploycheck
