//go:build race

package e2e

// As in .ci/run, which says why argon2 is compiled without.
func init() {
	buildFlags = append(buildFlags, "-race", "-gcflags=golang.org/x/crypto/argon2=-race=false")
}
