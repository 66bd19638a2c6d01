package embedded

import (
	"encoding/binary"
	"fmt"

	"oauth-server/internal/clientcfg"
)

// A client is stored as
//
//	byte 0     clientVersion
//	uvarint    flags, see below
//
// and the fields that follow, as in the records of codec.go. Those behind a flag are there if it is set.
// A record of another version, or with another flag, is one of a newer release and cannot be read.
const clientVersion = 1

const (
	flagPublic uint64 = 1 << iota
	flagWithoutPKCE
	flagResourceServer
	flagSecret     // the digest of the secret
	flagSecretUsed // the time
	flagFormer     // the former secret: its digest, until when it is valid, when it was used
	flagFirstParty
	flagLabels // one text

	clientFlags = 1<<iota - 1
)

func encodeClient(c *clientcfg.Client, version int64) []byte {
	var flags uint64
	for _, f := range [...]struct {
		flag uint64
		set  bool
	}{
		{flagPublic, c.Public},
		{flagWithoutPKCE, c.WithoutPKCE},
		{flagResourceServer, c.ResourceServer},
		{flagSecret, !c.SecretDigest.IsZero()},
		{flagSecretUsed, !c.SecretUsed.IsZero()},
		{flagFormer, c.Former != clientcfg.FormerSecret{}},
		{flagFirstParty, c.FirstParty},
		{flagLabels, c.Labels != ""},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	b := append(make([]byte, 0, 256), clientVersion)
	b = binary.AppendVarint(binary.AppendUvarint(b, flags), version)
	b = appendTime(appendString(b, c.Name), c.CreatedAt)
	b = binary.AppendUvarint(b, uint64(len(c.Grants)))
	for _, g := range c.Grants {
		b = appendString(b, string(g))
	}
	b = appendStrings(appendStrings(appendStrings(b, c.RedirectURIs), c.Scopes), c.Audience)
	b = appendStamp(b, c.Stamp)
	if flags&flagSecret != 0 {
		b = append(b, c.SecretDigest[:]...)
	}
	if flags&flagSecretUsed != 0 {
		b = appendTime(b, c.SecretUsed)
	}
	if flags&flagFormer != 0 {
		b = appendTime(appendTime(append(b, c.Former.Digest[:]...), c.Former.Until), c.Former.Used)
	}
	if flags&flagLabels != 0 {
		b = appendString(b, string(c.Labels))
	}
	return b
}

// decodeClient reads a record. Errors: [clientcfg.ErrUnreadableClient].
func decodeClient(id, value []byte) (c clientcfg.Client, err error) {
	switch {
	case len(value) > 0 && value[0] != clientVersion:
		err = fmt.Errorf("a newer release wrote it, as version %d", value[0])
	default:
		d := &decoder{rest: value}
		c = d.client()
		err = d.finish()
	}
	if err != nil {
		return clientcfg.Client{}, fmt.Errorf("%w: %w", clientcfg.ErrUnreadableClient, err)
	}
	c.ID = string(id)
	return c, nil
}

// client reads all but the ID, of a record of this version.
func (d *decoder) client() (c clientcfg.Client) {
	d.bytes(1)
	flags := d.length()
	if d.err == nil && flags&^clientFlags != 0 {
		d.err, d.rest = fmt.Errorf("a newer release wrote it, with the flags %#x", flags), nil
	}
	has := func(flag uint64) bool { return d.err == nil && flags&flag != 0 }
	c.Public, c.WithoutPKCE, c.ResourceServer, c.FirstParty = has(flagPublic), has(flagWithoutPKCE), has(flagResourceServer), has(flagFirstParty)
	c.Version, c.Name, c.CreatedAt = d.varint(), d.string(), d.time()
	c.Grants, c.RedirectURIs, c.Scopes, c.Audience = d.grants(), d.strings(), d.strings(), d.strings()
	c.Stamp = d.stamp()
	if has(flagSecret) {
		copy(c.SecretDigest[:], d.bytes(uint64(len(c.SecretDigest))))
	}
	if has(flagSecretUsed) {
		c.SecretUsed = d.time()
	}
	if has(flagFormer) {
		copy(c.Former.Digest[:], d.bytes(uint64(len(c.Former.Digest))))
		c.Former.Until, c.Former.Used = d.time(), d.time()
	}
	if has(flagLabels) {
		c.Labels = clientcfg.Labels(d.string())
	}
	return c
}

func (d *decoder) grants() []clientcfg.Grant {
	names := d.strings()
	if names == nil {
		return nil
	}
	list := make([]clientcfg.Grant, len(names))
	for i, name := range names {
		list[i] = clientcfg.Grant(name)
	}
	return list
}
