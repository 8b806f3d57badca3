package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// nomadModules are the last release of Nomad under an open-source licence (MPL 2.0) whose API, a
// module in a folder of it, the module proxy has in the same state. Sums are those of go.sum.
var nomadModules = []struct{ folder, module, sum string }{
	{".", "github.com/hashicorp/nomad@v1.6.3", "h1:M22raG/TH11N5XNRd/uQn64R/oeqQkwvQ/fvpoCvRCQ="},
	{"api", "github.com/hashicorp/nomad/api@v0.0.0-20231030125810-e0497bff1437", "h1:Q8BvGHtbdcY6qwvUetuRtGVPi77psJARI0cFboSHV4s="},
}

const nomadName = "Nomad 1.6.3"

func nomadBin(dir string) string { return filepath.Join(dir, "nomad-1.6.3", "nomad") }

// FindNomad returns the path of the nomad that BuildNomad has built. The error wraps ErrMissing if
// there is none.
func FindNomad() (path string, err error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	path = nomadBin(dir)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s: %w (looked in %s)", nomadName, ErrMissing, dir)
	}
	return path, nil
}

// BuildNomad is Build for Nomad's agent, which is Go and comes from the module proxy. It takes five
// minutes on two cores.
func BuildNomad(ctx context.Context, out io.Writer) error {
	return obtain(ctx, out, nomadName, FindNomad, func(b *builder) error { return b.buildNomad(ctx) })
}

func (b *builder) buildNomad(ctx context.Context) error {
	src := filepath.Join(b.dir, "nomad-src")
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(nomadBin(b.dir)), 0o755); err != nil {
		return err
	}
	b.say("fetching it and 300 modules")
	for _, m := range nomadModules {
		from, err := moduleDir(ctx, m.module, m.sum)
		if err != nil {
			return err
		}
		to := filepath.Join(src, m.folder)
		if err := errors.Join(os.RemoveAll(filepath.Join(src, "api")), os.CopyFS(to, os.DirFS(from))); err != nil {
			return err
		}
	}
	b.say("compiling, which takes some minutes")
	made := nomadBin(b.dir) + ".new"
	if err := b.run(ctx, src, []string{"GOFLAGS=-mod=mod -trimpath", "GOWORK=off"}, "go", "build", "-o", made, "."); err != nil {
		return err
	}
	return errors.Join(os.Rename(made, nomadBin(b.dir)), os.RemoveAll(src))
}

// moduleDir fetches a module and gives its folder, after it has checked its sum.
func moduleDir(ctx context.Context, module, sum string) (dir string, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	var m struct{ Dir, Sum, Error string }
	if e := json.Unmarshal(text, &m); e != nil || m.Error != "" || m.Dir == "" {
		return "", fmt.Errorf("%w: %s cannot be had: %s%s: %w", ErrImpossible, module, m.Error, said.Bytes(), errors.Join(err, e))
	}
	if m.Sum != sum {
		return "", fmt.Errorf("%s has the sum %s, not %s", module, m.Sum, sum)
	}
	return m.Dir, nil
}
