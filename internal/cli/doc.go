// Package cli is the command line of oauth-server. The commands are in the packages below, a package
// per noun. The tests here run whole command lines, in this process or in processes of their own.
package cli
