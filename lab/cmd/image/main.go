// Command image writes the container image of the server as an OCI image layout: an index of one image
// for each binary, which holds the binary and the CA certificates, and is run as the Dockerfile's is.
// The same binaries always give the same bytes; no Docker and no base image is needed.
//
//	image DIRECTORY BINARY...
//
// The architecture, version and time are those that the linker recorded in the binaries.
package main

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: image DIRECTORY BINARY...")
		os.Exit(2)
	}
	digest, err := write(os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

func write(dir string, files []string) (digest string, err error) {
	programs := make([]program, len(files))
	for i, file := range files {
		if programs[i], err = readProgram(file); err != nil {
			return "", fmt.Errorf("read %s: %w", file, err)
		}
	}
	return writeLayout(dir, programs)
}

// program is a binary and what the linker recorded in it.
type program struct {
	content                         []byte
	architecture, version, revision string
	built                           time.Time // of the revision
}

func readProgram(file string) (program, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return program{}, err
	}
	content, err := os.ReadFile(file) //nolint:gosec // G304: the file named by the caller
	if err != nil {
		return program{}, err
	}
	return programOf(info, content)
}

func programOf(info *debug.BuildInfo, content []byte) (p program, err error) {
	p = program{content: content, version: info.Main.Version}
	system := ""
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			system = s.Value
		case "GOARCH":
			p.architecture = s.Value
		case "vcs.revision":
			p.revision = s.Value
		case "vcs.time":
			if p.built, err = time.Parse(time.RFC3339, s.Value); err != nil {
				return program{}, err
			}
		}
	}
	if system != "linux" || p.revision == "" {
		return program{}, errors.New("not a binary for Linux that has its revision")
	}
	return p, nil
}
