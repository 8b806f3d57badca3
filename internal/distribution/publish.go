package distribution

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"

	"github.com/openimpi/impi/internal/pluginlock"
)

const signatureSuffix = ".minisig"

type publication struct {
	dir      string
	keys     []string // that must have signed; none: signatures are not verified
	unsigned bool     // binaries may have no signature
	oci      string   // folder of an OCI layout; empty: none
}

type published struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Platform string `json:"platform"`
	Binary
	Key string `json:"key,omitempty"` // ID of the key of the signature
}

func (p *publication) run(ctx context.Context) ([]published, error) {
	from, err := openFolder(p.dir)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, err
	}
	x := &Index{Format: Format, Plugins: map[string]Plugin{}}
	var list []published
	var faults []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), pluginlock.FilePrefix) || strings.HasSuffix(e.Name(), signatureSuffix) {
			continue
		}
		b, err := p.binary(ctx, from, e.Name())
		if err != nil {
			faults = append(faults, err)
			continue
		}
		list = append(list, *b)
		x.add(b)
	}
	if len(list)+len(faults) == 0 {
		faults = append(faults, fmt.Errorf("%s has no plugins: name them %sNAME_VERSION_OS_ARCH", p.dir, pluginlock.FilePrefix))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	text, err := json.MarshalIndent(x, "", "  ")
	if err == nil {
		err = pluginlock.Replace(filepath.Join(p.dir, IndexName), append(text, '\n'))
	}
	if err == nil && p.oci != "" {
		err = writeLayout(p.oci, from, list)
	}
	return list, err
}

func (x *Index) add(b *published) {
	if x.Plugins[b.Name] == nil {
		x.Plugins[b.Name] = Plugin{}
	}
	if x.Plugins[b.Name][b.Version] == nil {
		x.Plugins[b.Name][b.Version] = Release{}
	}
	x.Plugins[b.Name][b.Version][b.Platform] = b.Binary
}

func (p *publication) binary(ctx context.Context, from *folder, file string) (*published, error) {
	b := &published{Binary: Binary{File: file}}
	var err error
	if b.Name, b.Version, b.Platform, err = parseFileName(file); err != nil {
		return nil, err
	}
	in, err := from.open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := fitsPlatform(in.(io.ReaderAt), b.Platform); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	sum, signed := sha256.New(), minisign.NewReader(&counted{in: in, ctx: ctx})
	if b.Size, err = io.Copy(sum, signed); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	b.SHA256 = hex.EncodeToString(sum.Sum(nil))
	if err := b.check(b.Name, b.Version, b.Platform); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	text, err := from.read(file+signatureSuffix, maxSignature)
	switch {
	case errors.Is(err, os.ErrNotExist) && p.unsigned:
		return b, nil
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s has no signature: minisign -Sm %[1]s makes it; with -unsigned sites must trust its sha256 instead", file)
	case err != nil:
		return nil, err
	}
	b.Signature = file + signatureSuffix
	s, err := parseSignature(text, file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Signature, err)
	}
	b.Key = keyID(s.KeyID)
	if len(p.keys) > 0 {
		w := wanted{Binary: b.Binary, name: b.Name, version: b.Version, platform: b.Platform, keys: p.keys}
		if err := w.verify(s, signed); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Signature, err)
		}
	}
	return b, nil
}

var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64, "386": elf.EM_386, "arm64": elf.EM_AARCH64, "arm": elf.EM_ARM, "riscv64": elf.EM_RISCV,
	"ppc64le": elf.EM_PPC64, "ppc64": elf.EM_PPC64, "s390x": elf.EM_S390, "loong64": elf.EM_LOONGARCH,
}

// fitsPlatform refuses binaries that are for another processor than their names say.
func fitsPlatform(in io.ReaderAt, platform string) error {
	system, arch, _ := strings.Cut(platform, "_")
	f, err := elf.NewFile(in)
	want, known := machines[arch]
	if err != nil || system != "linux" || !known || f.Machine == want {
		return nil // a script, or its platform is unknown
	}
	return fmt.Errorf("it is a program for %v, and its name says %s", f.Machine, arch)
}
