package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the ID of the image's user and group, as in the Dockerfile.
const user = 65532

// writeLayout writes an index of the programs into a new directory and returns its digest.
func writeLayout(dir string, programs []program) (digest string, err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		image, err := imageOf(p)
		if err != nil {
			return "", fmt.Errorf("image for %s: %w", p.architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.architecture}},
		})
	}
	first := programs[0]
	annotated, ok := mutate.Annotations(index, labels(first)).(v1.ImageIndex)
	if !ok {
		return "", fmt.Errorf("annotate: %T is no index", index)
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // G301: others read it
		return "", err
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return "", err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": first.version})
	if err := path.AppendIndex(annotated, named); err != nil {
		return "", err
	}
	hash, err := annotated.Digest()
	return hash.String(), err
}

// labels describe the image, by https://github.com/opencontainers/image-spec/blob/main/annotations.md.
func labels(p program) map[string]string {
	const name = "org.opencontainers.image."
	return map[string]string{
		name + "title":       "oauth-server",
		name + "description": "An OAuth 2.0 authorization server with a rate limited token endpoint",
		name + "licenses":    "Apache-2.0",
		name + "version":     p.version,
		name + "revision":    p.revision,
		name + "created":     p.built.Format(time.RFC3339),
	}
}

// imageOf returns the image of a program. What changes least is the lowest layer.
func imageOf(p program) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range []struct {
		what  string
		files []file
	}{
		{"CA certificates and the directory of the embedded store", []file{
			{name: "etc/"},
			{name: "etc/ssl/"},
			{name: "etc/ssl/certs/"},
			{name: "etc/ssl/certs/ca-certificates.crt", content: certificates()},
			{name: "data/", owner: user},
		}},
		{"oauth-server", []file{{name: "oauth-server", content: p.content, executable: true}}},
	} {
		layer, err := layerOf(l.files)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, MediaType: types.OCILayer,
			History: v1.History{Created: v1.Time{Time: p.built}, CreatedBy: l.what},
		})
		if err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", p.architecture, v1.Time{Time: p.built}
	config.Config = settings(p)
	return mutate.ConfigFile(image, config)
}

// settings returns the settings of the Dockerfile.
func settings(p program) v1.Config {
	return v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		ExposedPorts: map[string]struct{}{"9096/tcp": {}},
		Env:          []string{"OAUTH_LISTEN=0.0.0.0:9096", "OAUTH_LOG_FORMAT=json"},
		WorkingDir:   "/data",
		Volumes:      map[string]struct{}{"/data": {}},
		Entrypoint:   []string{"/oauth-server"},
		Cmd:          []string{"serve"},
		Labels:       labels(p),
		Healthcheck: &v1.HealthConfig{
			Test: []string{"CMD", "/oauth-server", "health"}, Interval: 5 * time.Second, Timeout: 3 * time.Second, StartPeriod: 10 * time.Second,
		},
	}
}

// file is a file or, if its name ends with a slash, a directory.
type file struct {
	name       string
	content    []byte
	executable bool
	owner      int
}

// layerOf packs files, without a time, so that the same files are the same layer.
func layerOf(files []file) (v1.Layer, error) {
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for _, f := range files {
		header := &tar.Header{
			Name: f.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(f.content)), Uid: f.owner, Gid: f.owner,
			ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		}
		if f.name[len(f.name)-1] == '/' {
			header.Typeflag = tar.TypeDir
		}
		if f.executable || header.Typeflag == tar.TypeDir {
			header.Mode = 0o755
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// certificates returns Mozilla's root certificates as PEM, as the Dockerfile does. They come from a
// module, so they do not depend on the machine.
func certificates() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
	}
	return out.Bytes()
}
