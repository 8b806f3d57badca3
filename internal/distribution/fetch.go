package distribution

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"aead.dev/minisign"
)

type wanted struct {
	Binary
	name, version, platform string
	keys                    []string
}

func (w *wanted) String() string { return w.name + " " + w.version + " for " + w.platform }

// fetch copies a binary to a writer, whose contents are to be used only if fetch returns no error:
// they are checked at the end. It returns the ID of the key of the signature, which is empty if
// there are no keys. progress is called with the bytes so far.
func fetch(ctx context.Context, from source, w *wanted, to io.Writer, progress func(int64)) (signer string, err error) {
	var signature minisign.Signature
	if len(w.keys) > 0 {
		if signature, err = w.signature(ctx, from); err != nil {
			return "", fmt.Errorf("%v: %w", w, err)
		}
	}
	in, err := from.open(ctx, w.File)
	if err != nil {
		return "", fmt.Errorf("%v: %w", w, err)
	}
	defer in.Close()
	sum := sha256.New()
	signed := minisign.NewReader(&counted{in: io.LimitReader(in, w.Size+1), tell: progress, ctx: ctx})
	n, err := io.Copy(io.MultiWriter(to, sum), signed)
	switch have := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return "", fmt.Errorf("%v: %w", w, err)
	case n > w.Size:
		return "", fmt.Errorf("%v: %s has more than the %d bytes of the index; tell who runs the source", w, w.File, w.Size)
	case n < w.Size:
		return "", fmt.Errorf("%v: %s ended after %d of %d bytes; try again", w, w.File, n, w.Size)
	case have != w.SHA256:
		return "", fmt.Errorf("%v: %s has sha256 %s, and %s was expected: it was changed, or published again without a new version; tell who runs the source", w, w.File, have, w.SHA256)
	}
	if len(w.keys) == 0 {
		return "", nil
	}
	if err := w.verify(signature, signed); err != nil {
		return "", fmt.Errorf("%v: %w", w, err)
	}
	return keyID(signature.KeyID), nil
}

func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

func (w *wanted) signature(ctx context.Context, from source) (s minisign.Signature, err error) {
	if w.Signature == "" {
		return s, errors.New("the plugin block has keys, and the source has no signature of it: ask its maker for one, or trust sha256 instead of keys")
	}
	in, err := from.open(ctx, w.Signature)
	if err != nil {
		return s, err
	}
	defer in.Close()
	text, err := readAll(in, w.Signature, maxSignature)
	if err != nil {
		return s, err
	}
	if s, err = parseSignature(text, FileName(w.name, w.version, w.platform)); err != nil {
		return s, fmt.Errorf("%s: %w", w.Signature, err)
	}
	_, err = w.key(s) // fail before the binary is read
	return s, err
}

// parseSignature reads a signature and checks what its trusted comment says, which is not verified
// yet.
func parseSignature(text []byte, file string) (s minisign.Signature, err error) {
	switch err := s.UnmarshalText([]byte(strings.TrimRight(string(text), "\r\n"))); {
	case err != nil:
		return s, fmt.Errorf("it is not a signature of minisign (%w)", err)
	case s.Algorithm != minisign.HashEdDSA:
		return s, errors.New("it is in the old format of minisign, without hashing: sign with minisign 0.10 or newer, or -H")
	case !slices.Contains(strings.Fields(s.TrustedComment), "file:"+file):
		return s, fmt.Errorf("its trusted comment is %.200q, and must have file:%s, as minisign writes by itself for a file of that name", s.TrustedComment, file)
	}
	return s, nil
}

func (w *wanted) verify(s minisign.Signature, signed *minisign.Reader) error {
	key, err := w.key(s)
	if err != nil {
		return err
	}
	text, err := s.MarshalText()
	if err == nil && !signed.Verify(key, text) {
		err = fmt.Errorf("the signature by the key %s is wrong: the file or the signature was changed; tell who runs the source", keyID(s.KeyID))
	}
	return err
}

func (w *wanted) key(s minisign.Signature) (minisign.PublicKey, error) {
	var ids []string
	for _, k := range w.keys {
		var key minisign.PublicKey
		if err := key.UnmarshalText([]byte(k)); err != nil {
			return key, fmt.Errorf("the key %q: %w", k, err)
		}
		if key.ID() == s.KeyID {
			return key, nil
		}
		ids = append(ids, keyID(key.ID()))
	}
	return minisign.PublicKey{}, fmt.Errorf("it is signed by the key %s, and the plugin block trusts %s; if its maker has a new key, add that to keys", keyID(s.KeyID), strings.Join(ids, ", "))
}

// counted tells how much was read, and ends when its context does.
type counted struct {
	in   io.Reader
	n    int64
	tell func(int64)
	ctx  context.Context
}

func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.in.Read(p)
	c.n += int64(n)
	if c.tell != nil {
		c.tell(c.n)
	}
	return n, err
}
