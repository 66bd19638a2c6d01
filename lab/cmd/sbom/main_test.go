package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
)

// The binary of this test has modules linked into it, as the server has.
func TestBillOfMaterialsListsTheModulesOfABinary(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := write(out, binary); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two runs differ")
	}
	var b cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&b); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	var got []string
	for _, c := range *b.Components {
		got = append(got, c.PackageURL)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 2 {
		t.Errorf("components (-in the binary +in the bill):\n%s", diff)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if hashes := *b.Metadata.Component.Hashes; hashes[0].Value != fmt.Sprintf("%x", sha256.Sum256(content)) {
		t.Errorf("the bill is of %+v", hashes)
	}
}

func TestNotAGoBinary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(&bytes.Buffer{}, file); err == nil {
		t.Error("a bill of materials of nothing")
	}
}
