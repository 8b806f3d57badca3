package peers

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrImpossible is wrapped if a peer cannot be built on this machine, even with a network.
var ErrImpossible = errors.New("not possible here")

// stanza is one entry of the machine's package sources, with its fields in the
// names of the newer format.
type stanza map[string]string

// readSources reads both formats of package sources.
func readSources(r io.Reader, deb822 bool) (all []stanza, err error) {
	var field string
	s := stanza{}
	end := func() {
		if len(s) > 0 {
			all = append(all, s)
		}
		s, field = stanza{}, ""
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case !deb822:
			if s, ok := oneLine(line); ok {
				all = append(all, s)
			}
		case strings.TrimSpace(line) == "":
			end()
		case line[0] == ' ' || line[0] == '\t':
			s[field] += "\n" + line
		default:
			name, value, _ := strings.Cut(line, ":")
			field = strings.ToLower(strings.TrimSpace(name))
			s[field] = strings.TrimSpace(value)
		}
	}
	end()
	return all, lines.Err()
}

// oneLine reads "deb [options] uri suite components".
func oneLine(line string) (s stanza, ok bool) {
	kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	rest = strings.TrimSpace(rest)
	s = stanza{"types": kind}
	if strings.HasPrefix(rest, "[") {
		options, after, closed := strings.Cut(rest[1:], "]")
		if !closed {
			return nil, false
		}
		for _, o := range strings.Fields(options) {
			if name, value, ok := strings.Cut(o, "="); ok {
				s[strings.ToLower(name)] = value
			}
		}
		rest = after
	}
	words := strings.Fields(rest)
	if !strings.HasPrefix(kind, "deb") || len(words) < 3 {
		return nil, false
	}
	s["uris"], s["suites"], s["components"] = words[0], words[1], strings.Join(words[2:], " ")
	return s, true
}

// sourcePackages makes, of the sources of binary packages, an entry for the source
// packages of one release.
func sourcePackages(all []stanza, codename string) (string, bool) {
	for _, s := range all {
		if !slices.Contains(strings.Fields(s["suites"]), codename) || !slices.Contains(strings.Fields(s["components"]), "main") ||
			strings.EqualFold(s["enabled"], "no") {
			continue
		}
		text := fmt.Sprintf("Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\n", s["uris"], codename)
		if key := s["signed-by"]; key != "" {
			text += "Signed-By: " + key + "\n"
		}
		return text, true
	}
	return "", false
}

// machineSources reads the package sources of this machine.
func machineSources(etc string) (all []stanza) {
	files, _ := filepath.Glob(filepath.Join(etc, "sources.list.d", "*"))
	for _, name := range append([]string{filepath.Join(etc, "sources.list")}, files...) {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		found, _ := readSources(f, strings.HasSuffix(name, ".sources"))
		_ = f.Close()
		all = append(all, found...)
	}
	return all
}

// codename is the release of this machine's Debian.
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

// fetch gets an archive into dir, unless it is there.
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
	entry, ok := sourcePackages(machineSources("/etc/apt"), release)
	if !ok {
		return fmt.Errorf("%w: no package source of this machine has main of %s", ErrImpossible, release)
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
	return nil // whatever else of the package could not be had
}

// checkSum reports a file that is not the archive.
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
