// Package deploycheck tests the deployment files: docker-compose.yml, Dockerfile
// and deploy/. It reads them with the code that reads them in production: the
// loader of Docker Compose, kustomize, Helm, the types of Kubernetes, systemd and
// the server's own configuration. It has tests only.
package deploycheck
