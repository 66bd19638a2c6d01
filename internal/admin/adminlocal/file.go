package adminlocal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"oauth-server/internal/secret"
)

// Access is the content of the file.
type Access struct {
	URL string `json:"url"` // of the admin API
	Key string `json:"key"`
}

// New returns the access to a server at that URL, with a new key.
func New(url string) Access { return Access{URL: url, Key: secret.New()} }

// Token returns the bearer token that makes its sender an operator, if sent from a loopback
// address.
func (a *Access) Token() string { return "local-" + a.derive("token") }

// Proof returns the server's response to a challenge.
func (a *Access) Proof(challenge string) string { return a.derive("proof " + challenge) }

func (a *Access) derive(purpose string) string {
	mac := hmac.New(sha256.New, []byte(a.Key))
	_, _ = mac.Write([]byte(purpose))
	return hex.EncodeToString(mac.Sum(nil))
}

// The headers of a challenge and its proof, for GET /healthz, and of the user of the key, as
// claimed by the sender.
const (
	ChallengeHeader = "X-Local-Challenge"
	ProofHeader     = "X-Local-Proof"
	OperatorHeader  = "X-Local-Operator"
)

// MaxChallenge is the maximum length of a challenge, in bytes.
const MaxChallenge = 100

// path returns the path of the file. It resolves symbolic links to the data file.
func path(dataFile string) string {
	if resolved, err := filepath.EvalSymlinks(dataFile); err == nil {
		dataFile = resolved
	}
	return dataFile + ".admin"
}

// Write writes the file beside the data file, readable by its owner only. It replaces a left-over
// file.
func (a *Access) Write(dataFile string) (err error) {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	to := path(dataFile)
	f, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Remove removes the file, unless another server has replaced it.
func (a *Access) Remove(dataFile string) error {
	there, err := Read(dataFile)
	if err != nil || there != *a {
		return nil //nolint:nilerr // it is gone, or belongs to another server
	}
	return os.Remove(path(dataFile))
}

// ErrNone is returned if there is no file beside the data file.
var ErrNone = errors.New("the server that holds it has no known admin address")

// maxFile is the maximum size of the file, in bytes.
const maxFile = 4 << 10

// Read reads the file beside the data file. It returns ErrNone if there is no file.
func Read(dataFile string) (a Access, err error) {
	f, err := os.Open(path(dataFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return a, ErrNone
	case err != nil:
		return a, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err == nil {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(&a)
	}
	if err != nil || a.URL == "" || a.Key == "" {
		return Access{}, fmt.Errorf("read %s: %w", f.Name(), errors.Join(err, ErrNone))
	}
	return a, nil
}
