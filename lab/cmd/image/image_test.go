package main

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"oauth-server/internal/check"
)

// programs returns a release of two architectures, whose binaries are only text.
func programs() []program {
	var all []program
	for _, architecture := range []string{"amd64", "arm64"} {
		all = append(all, program{
			content: []byte("program for " + architecture), architecture: architecture, version: "v1.2.3", revision: "0a1b",
			built: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		})
	}
	return all
}

func TestSameBinariesGiveTheSameBytes(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "image"), filepath.Join(t.TempDir(), "image")
	one, err := writeLayout(first, programs())
	check.OK(t, err)
	other, err := writeLayout(second, programs())
	check.OK(t, err)
	check.Equal(t, "digest", other, one)
	check.OK(t, filepath.WalkDir(first, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(first, path)
		check.OK(t, err)
		a, err := os.ReadFile(path)
		check.OK(t, err)
		b, err := os.ReadFile(filepath.Join(second, relative))
		check.OK(t, err)
		if string(a) != string(b) {
			t.Errorf("%s differs", relative)
		}
		return nil
	}))
	changed := programs()
	changed[1].content = []byte("another")
	if third, err := writeLayout(filepath.Join(t.TempDir(), "image"), changed); err != nil || third == one {
		t.Errorf("another binary: %s, %v", third, err)
	}
	if _, err := writeLayout(first, changed); err == nil {
		t.Error("a directory that exists is written to")
	}
}

// images returns the images of a layout, by architecture.
func images(t *testing.T) map[string]v1.Image {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	digest, err := writeLayout(dir, programs())
	check.OK(t, err)
	outer, err := layout.ImageIndexFromPath(dir)
	check.OK(t, err)
	check.OK(t, validate.Index(outer))
	manifest, err := outer.IndexManifest()
	check.OK(t, err)
	check.Equal(t, "entries of the layout", len(manifest.Manifests), 1)
	check.Equal(t, "digest", manifest.Manifests[0].Digest.String(), digest)
	check.Equal(t, "name", manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"], "v1.2.3")
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	check.OK(t, err)
	manifest, err = index.IndexManifest()
	check.OK(t, err)
	all := map[string]v1.Image{}
	for _, m := range manifest.Manifests {
		check.Equal(t, "system", m.Platform.OS, "linux")
		all[m.Platform.Architecture], err = index.Image(m.Digest)
		check.OK(t, err)
	}
	check.Equal(t, "images", len(all), 2)
	return all
}

func TestImageHoldsTheBinaryAndCertificates(t *testing.T) {
	for architecture, image := range images(t) {
		layers, err := image.Layers()
		check.OK(t, err)
		found := map[string]string{}
		for _, l := range layers {
			content, err := l.Uncompressed()
			check.OK(t, err)
			for r := tar.NewReader(content); ; {
				h, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				check.OK(t, err)
				text, err := io.ReadAll(r)
				check.OK(t, err)
				found[h.Name] = string(text)
				if h.FileInfo().Mode().Perm()&0o022 != 0 {
					t.Errorf("%s may be written by others: %v", h.Name, h.FileInfo().Mode())
				}
				if wants := h.Name == "data/"; wants != (h.Uid == user) {
					t.Errorf("%s belongs to %d", h.Name, h.Uid)
				}
			}
		}
		check.Equal(t, "the binary", found["oauth-server"], "program for "+architecture)
		if !x509.NewCertPool().AppendCertsFromPEM([]byte(found["etc/ssl/certs/ca-certificates.crt"])) {
			t.Error("there are no certificates")
		}
		check.Equal(t, "files", len(found), 6)
	}
}

// The image is run as that of the Dockerfile: what its last stage says is in the configuration.
func TestImageIsThatOfTheDockerfile(t *testing.T) {
	dockerfile, err := os.ReadFile("../../../Dockerfile")
	check.OK(t, err)
	last := string(dockerfile)[strings.LastIndex(string(dockerfile), "\nFROM "):]
	for _, image := range images(t) {
		file, err := image.ConfigFile()
		check.OK(t, err)
		c := file.Config
		var ports, volumes []string
		for p := range c.ExposedPorts {
			ports = append(ports, strings.TrimSuffix(p, "/tcp"))
		}
		for v := range c.Volumes {
			volumes = append(volumes, v)
		}
		is := map[string]string{
			"FROM":       "scratch",
			"USER":       c.User,
			"EXPOSE":     strings.Join(ports, " "),
			"WORKDIR":    c.WorkingDir,
			"VOLUME":     strings.Join(volumes, " "),
			"ENV":        strings.Join(c.Env, " "),
			"ENTRYPOINT": `["` + strings.Join(c.Entrypoint, `", "`) + `"]`,
			"CMD":        `["` + strings.Join(c.Cmd, `", "`) + `"]`,
			"HEALTHCHECK": "--interval=" + c.Healthcheck.Interval.String() + " --timeout=" + c.Healthcheck.Timeout.String() +
				" --start-period=" + c.Healthcheck.StartPeriod.String() + ` CMD ["` + strings.Join(c.Healthcheck.Test[1:], `", "`) + `"]`,
		}
		for _, line := range regexp.MustCompile(`(?m)^([A-Z]+) (.*)$`).FindAllStringSubmatch(last, -1) {
			if want, ok := is[line[1]]; line[1] != "COPY" && (!ok || line[2] != want) {
				t.Errorf("the Dockerfile says %s, and the image %s", line[0], want)
			}
		}
		if copies := strings.Count(last, "\nCOPY "); copies != 3 {
			t.Errorf("the Dockerfile copies %d things, and the image holds certificates, binary and /data", copies)
		}
	}
}

func TestOnlyBinariesForLinuxWithARevision(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "GOOS", Value: "linux"}, {Key: "GOARCH", Value: "arm64"}, {Key: "vcs.revision", Value: "0a1b"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}}
	p, err := programOf(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: settings}, nil)
	check.OK(t, err)
	check.Equal(t, "program", p, program{architecture: "arm64", version: "v1.2.3", revision: "0a1b", built: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	for i, value := range map[int]string{0: "darwin", 2: "", 3: "yesterday"} {
		bad := append([]debug.BuildSetting{}, settings...)
		bad[i].Value = value
		if _, err := programOf(&debug.BuildInfo{Settings: bad}, nil); err == nil {
			t.Errorf("%s=%s is taken", bad[i].Key, value)
		}
	}
}
