package peers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrImpossible is wrapped if a peer cannot be built on this machine, even with a network.
var ErrImpossible = errors.New("not possible here")

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Mirror returns where this machine has the binary packages of its release of Debian from, which has
// other releases, too.
func Mirror(ctx context.Context) (string, error) {
	release, err := codename("/etc/os-release")
	if err != nil {
		return "", err
	}
	return mirror(ctx, release)
}

func mirror(ctx context.Context, release string) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI)", "Identifier: Packages", "Release: "+release, "Component: main").Output()
	uri, _, _ := strings.Cut(string(out), "\n")
	if err != nil || uri == "" {
		return "", fmt.Errorf("%w: no package source of this machine has main of %s", errors.Join(ErrImpossible, err), release)
	}
	return uri, nil
}

// sourcePackages makes an entry for the source packages of a release, at the place that this
// machine has its binary packages from.
func sourcePackages(ctx context.Context, release string) (string, error) {
	uri, err := mirror(ctx, release)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\n", uri, release)
	if _, err := os.Stat(keyring); err == nil {
		text += "Signed-By: " + keyring + "\n"
	}
	return text, nil
}

func codename(release string) (string, error) {
	b, err := os.ReadFile(release)
	if err != nil {
		return "", err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[name] = strings.Trim(value, `"`)
	}
	if fields["ID"] != "debian" || fields["VERSION_CODENAME"] == "" {
		return "", fmt.Errorf("%w: the source comes from Debian, and this is %q", ErrImpossible, fields["PRETTY_NAME"])
	}
	return fields["VERSION_CODENAME"], nil
}

// origin is the upstream archive in one of Debian's source packages, which is what
// Debian checked when it took it.
type origin struct {
	name    string // for people
	source  string // the source package
	archive string
	sha256  string // of the archive itself
}

var lamOrigin = origin{
	"LAM/MPI", "lam", "lam_7.1.4.orig.tar.gz",
	"7cd5f289b9e4887d2a62532c33d93265a049b372ae23d0a6309e6870fef811ae",
}

func (b *builder) fetch(ctx context.Context, o origin) error {
	archive := filepath.Join(b.dir, o.archive)
	if o.checkSum(archive) == nil {
		return nil
	}
	_ = os.Remove(archive)
	release, err := codename("/etc/os-release")
	if err != nil {
		return err
	}
	entry, err := sourcePackages(ctx, release)
	if err != nil {
		return err
	}
	apt := filepath.Join(b.dir, "apt")
	if err := errors.Join(os.MkdirAll(filepath.Join(apt, "lists", "partial"), 0o755), os.MkdirAll(filepath.Join(apt, "cache"), 0o755)); err != nil {
		return err
	}
	list := filepath.Join(apt, "peers.sources")
	if err := os.WriteFile(list, []byte(entry), 0o644); err != nil {
		return err
	}
	own := []string{
		"-o", "Dir::Etc::sourcelist=" + list, "-o", "Dir::Etc::sourceparts=/dev/null",
		"-o", "Dir::State::lists=" + filepath.Join(apt, "lists"), "-o", "Dir::Cache=" + filepath.Join(apt, "cache"),
		"-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=true",
	}
	b.say("fetching the list of source packages")
	if err := b.run(ctx, b.dir, nil, "apt-get", append(own, "update")...); err != nil {
		return fmt.Errorf("is there a network? %w", err)
	}
	b.say("fetching %s", o.archive)
	err = b.run(ctx, b.dir, nil, "apt-get", append(own, "source", "--download-only", "--tar-only", o.source)...)
	if sum := o.checkSum(archive); sum != nil {
		return fmt.Errorf("fetch %s: %w", o.name, errors.Join(err, sum))
	}
	return nil // even if other files of the package could not be fetched
}

func (o origin) checkSum(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if sum := hex.EncodeToString(h.Sum(nil)); sum != o.sha256 {
		return fmt.Errorf("%s has the SHA-256 %s, want %s", name, sum, o.sha256)
	}
	return nil
}
