// Command sbom writes the bill of materials of a Go binary in the format CycloneDX 1.6 (JSON):
// the modules that the linker recorded in it, and the standard library. The same binary always
// gives the same bytes.
//
//	sbom BINARY > oauth-server.cdx.json
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY")
		os.Exit(2)
	}
	if err := write(os.Stdout, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(w io.Writer, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary) //nolint:gosec // G304: the file named by the caller
	if err != nil {
		return err
	}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom(info, sha256.Sum256(content)), cdx.SpecVersion1_6)
}

// bom lists what a binary was linked from. It has no time and no serial number, which would
// differ between two builds of the same sources.
func bom(info *debug.BuildInfo, digest [sha256.Size]byte) *cdx.BOM {
	program := component(cdx.ComponentTypeApplication, &info.Main)
	program.Name = path.Base(info.Path)
	program.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}}
	var properties []cdx.Property
	for _, s := range info.Settings {
		properties = append(properties, cdx.Property{Name: "go:build:" + s.Key, Value: s.Value})
	}
	program.Properties = &properties

	parts := []cdx.Component{component(cdx.ComponentTypeLibrary, &debug.Module{Path: "std", Version: info.GoVersion})}
	needed := []string{parts[0].BOMRef}
	for _, m := range info.Deps {
		c := component(cdx.ComponentTypeLibrary, m)
		parts, needed = append(parts, c), append(needed, c.BOMRef)
	}
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{Component: &program}
	b.Components = &parts
	// Which module needs which is not in the binary.
	b.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &needed}}
	return b
}

// component describes a module: that which replaces it, if one does.
func component(kind cdx.ComponentType, m *debug.Module) cdx.Component {
	if m.Replace != nil {
		m = m.Replace
	}
	version := strings.TrimPrefix(m.Version, "go") // of the standard library
	purl := "pkg:golang/" + m.Path
	if version != "" && version != "(devel)" {
		purl += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	c := cdx.Component{BOMRef: purl, Type: kind, Name: m.Path, Version: version, PackageURL: purl}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}
