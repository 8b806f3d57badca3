// Package distribution publishes transport plugins in folders that any web server can serve, and in
// OCI layouts, and installs them from there: versions by constraint, files by checksum and
// signature.
package distribution

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"

	"github.com/openimpi/impi/internal/pluginlock"
)

// IndexName is the file in a mirror that lists its plugins.
const IndexName = "impi-plugins.json"

// Format is the index's format that this program writes and reads.
const Format = 1

// Bounds of what is read from other machines, in bytes.
const (
	maxIndex     = 8 << 20
	maxSignature = 4 << 10
	maxBinary    = 1 << 30
)

// Index lists the plugins of a mirror.
type Index struct {
	Format  int               `json:"format"`
	Plugins map[string]Plugin `json:"plugins"` // by name
}

// Plugin maps versions to a plugin's releases.
type Plugin map[string]Release

// Release maps platforms to the binaries of a version.
type Release map[string]Binary

// Binary is a file, and the properties that it must have.
type Binary struct {
	File      string `json:"file"` // below the folder of the index; in an OCI layout, a digest
	Size      int64  `json:"size"`
	SHA256    string `json:"sha256"`
	Signature string `json:"signature,omitempty"` // the file of its minisign signature
}

// FileName returns the name of a published binary. Its signature has the name in the trusted
// comment, so that one release cannot pass for another.
func FileName(name, version, platform string) string {
	return pluginlock.FilePrefix + name + "_" + version + "_" + platform
}

func parseFileName(file string) (name, version, platform string, err error) {
	parts := strings.Split(strings.TrimPrefix(file, pluginlock.FilePrefix), "_")
	if len(parts) == 4 {
		name, version, platform = parts[0], parts[1], parts[2]+"_"+parts[3]
		if _, err = pluginlock.Version(version); err == nil && pluginlock.ValidName(name) && pluginlock.ValidPlatform(platform) {
			return name, version, platform, nil
		}
	}
	return "", "", "", fmt.Errorf("%s: name it %sNAME_VERSION_OS_ARCH, such as %s", file, pluginlock.FilePrefix, FileName("ofi", "1.2.3", "linux_amd64"))
}

// ParseIndex reads an index and checks all of it.
func ParseIndex(text []byte) (*Index, error) {
	x := &Index{}
	var head struct{ Format int }
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("it is not an index of plugins: %w", err)
	}
	switch {
	case head.Format > Format:
		return nil, fmt.Errorf("its format is %d, and this impi-node reads %d: update impi-node", head.Format, Format)
	case head.Format != Format:
		return nil, fmt.Errorf("it has no \"format\": %d: impi-node plugins publish makes the index", Format)
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(x); err != nil {
		return nil, err
	}
	for name, p := range x.Plugins {
		for version, r := range p {
			for platform, b := range r {
				if err := b.check(name, version, platform); err != nil {
					return nil, fmt.Errorf("plugin %q, version %q, platform %q: %w", name, version, platform, err)
				}
			}
		}
	}
	return x, nil
}

// validFile is a path below a folder that means the same in file systems and URLs.
var validFile = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)

func (b *Binary) check(name, version, platform string) error {
	_, err := pluginlock.Version(version)
	switch {
	case err != nil:
		return err
	case !pluginlock.ValidName(name):
		return errors.New("that is not a plugin's name")
	case !pluginlock.ValidPlatform(platform):
		return errors.New("that is not a platform")
	case len(b.File) > 255 || !validFile.MatchString(b.File):
		return fmt.Errorf("the file %.300q is not below the folder of the index", b.File)
	case b.Signature != "" && (len(b.Signature) > 255 || !validFile.MatchString(b.Signature)):
		return fmt.Errorf("the signature %.300q is not below the folder of the index", b.Signature)
	case b.Size <= 0 || b.Size > maxBinary:
		return fmt.Errorf("it has %d bytes; plugins have at most %d", b.Size, int64(maxBinary))
	case !pluginlock.ValidSum(b.SHA256):
		return fmt.Errorf("sha256 is %.80q", b.SHA256)
	}
	return nil
}

// versions returns the versions of a plugin, newest first.
func (p Plugin) versions() []*version.Version {
	var list []*version.Version
	for text := range p {
		if v, err := pluginlock.Version(text); err == nil {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b *version.Version) int { return b.Compare(a) })
	return list
}

func (p Plugin) words() string {
	const most = 8
	var list []string
	for i, v := range p.versions() {
		if i == most {
			list = append(list, "...")
			break
		}
		list = append(list, v.String())
	}
	return strings.Join(list, ", ")
}

func (r Release) platforms() []string { return slices.Sorted(maps.Keys(r)) }
