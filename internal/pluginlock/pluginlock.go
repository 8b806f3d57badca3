// Package pluginlock has the lock file of a job file's plugins: which version of each is used, and
// the checksums of its binaries. It also says what names, versions and platforms look like, and
// where in plugin_dir an installed binary is.
package pluginlock

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"

	"github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/openimpi/impi/internal/hcldepth"
	"github.com/openimpi/impi/plugins/sdk/support/plainfile"
)

// Name is the name of the lock file, in the folder of the job file.
const Name = "impi.lock.hcl"

// FilePrefix is the beginning of the file name of a plugin; the plugin's name follows.
const FilePrefix = "impi-transport-"

// maxFile bounds a lock file, in bytes. One of a thousand plugins on five platforms has half of
// that.
const maxFile = 1 << 20

const header = `# impi-node plugins install keeps this file. Put it under version control, beside the job file:
# nodes run these versions of the plugins, and no file with another checksum.
`

// Lock is the content of a lock file.
type Lock struct {
	Plugins map[string]Entry // by name
}

// Entry is the content of a lock file for one plugin.
type Entry struct {
	Source  string            // where it came from, as in the job file
	Version string            // canonical, see Version
	SHA256  map[string]string // of the binary, by platform, in hex
}

type parsed struct {
	Plugins []struct {
		Name    string            `hcl:"name,label"`
		Source  string            `hcl:"source"`
		Version string            `hcl:"version"`
		SHA256  map[string]string `hcl:"sha256"`
	} `hcl:"plugin,block"`
}

// Read reads the lock file at path. If there is none, the lock has no plugins.
func Read(path string) (*Lock, error) {
	l := &Lock{Plugins: map[string]Entry{}}
	text, err := plainfile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	} else if err != nil {
		return nil, err
	}
	if at, deep := hcldepth.TooDeep(text, path); deep {
		return nil, fmt.Errorf("%s:%d: it is nested too deep for a lock file", path, at.Start.Line)
	}
	file, diags := hclparse.NewParser().ParseHCL(text, path)
	var p parsed
	if !diags.HasErrors() {
		diags = gohcl.DecodeBody(file.Body, nil, &p)
	}
	if diags.HasErrors() {
		return nil, broken(path, diags)
	}
	for _, x := range p.Plugins {
		e := Entry{Source: x.Source, Version: x.Version, SHA256: x.SHA256}
		if err := e.check(x.Name); err != nil {
			return nil, fmt.Errorf("%s: plugin %q: %w", path, x.Name, err)
		}
		if _, twice := l.Plugins[x.Name]; twice {
			return nil, fmt.Errorf("%s: plugin %q is there twice; leave one", path, x.Name)
		}
		l.Plugins[x.Name] = e
	}
	return l, nil
}

func broken(path string, diags hcl.Diagnostics) error {
	d := diags[0]
	line := 1
	if d.Subject != nil {
		line = d.Subject.Start.Line
	}
	return fmt.Errorf("%s:%d: %s: %s", path, line, d.Summary, d.Detail)
}

func (e *Entry) check(name string) error {
	if !ValidName(name) {
		return errors.New("that is not a plugin's name")
	}
	if _, err := Version(e.Version); err != nil {
		return err
	}
	for platform, sum := range e.SHA256 {
		if !ValidPlatform(platform) || !validSum(sum) {
			return fmt.Errorf("sha256: %q = %q is not a platform with 64 hex digits in lower case", platform, sum)
		}
	}
	return nil
}

// Text returns the lock file's text: sorted, and the same for the same contents.
func (l *Lock) Text() []byte {
	f := hclwrite.NewEmptyFile()
	for _, name := range slices.Sorted(maps.Keys(l.Plugins)) {
		e := l.Plugins[name]
		f.Body().AppendNewline()
		b := f.Body().AppendNewBlock("plugin", []string{name}).Body()
		b.SetAttributeValue("source", cty.StringVal(e.Source))
		b.SetAttributeValue("version", cty.StringVal(e.Version))
		sums := map[string]cty.Value{}
		for platform, sum := range e.SHA256 {
			sums[platform] = cty.StringVal(sum)
		}
		b.SetAttributeValue("sha256", cty.ObjectVal(sums))
	}
	return append([]byte(header), hclwrite.Format(f.Bytes())...)
}

// Write replaces the lock file at path.
func (l *Lock) Write(path string) error { return Replace(path, l.Text()) }

// Replace writes a file that everybody may read, in place of an existing one. Readers see the old
// text or the new one, whenever this process is killed.
func Replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), Temporary+"*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // has no effect once it is renamed
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// Temporary is the beginning of the names of files that are not complete yet.
const Temporary = ".impi-partial-"

var (
	validName     = whole(`[a-z][a-z0-9-]{0,31}`)
	validPlatform = whole(`[a-z0-9]{1,16}_[a-z0-9]{1,16}`)
	validSum      = whole(`[0-9a-f]{64}`)
	validVersion  = whole(`[0-9][0-9A-Za-z.-]{0,63}`)
)

// whole returns a function that reports whether an expression matches all of a text. It is compiled
// when it is used first, as most processes of impi-node make no use of it.
func whole(expr string) func(string) bool {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^" + expr + "$") })
	return func(s string) bool { return compiled().MatchString(s) }
}

// ValidName reports whether s is a valid name of a plugin, and so of its transport.
func ValidName(s string) bool { return validName(s) }

// ValidPlatform reports whether s is GOOS_GOARCH.
func ValidPlatform(s string) bool { return validPlatform(s) }

// ValidSum reports whether s is a SHA-256 in lower-case hex digits.
func ValidSum(s string) bool { return validSum(s) }

// Version parses a plugin's version. There is one form for each version, since files and folders
// have it in their names: three numbers, and a dash and text in a pre-release. The plus part of
// semantic versions is not allowed, as two versions that differ in nothing else have no order.
func Version(s string) (*version.Version, error) {
	v, err := version.NewSemver(s)
	if err != nil || !validVersion(s) || v.String() != s || len(v.Segments()) != 3 {
		return nil, fmt.Errorf("%q is not a version such as 1.2.3 or 1.3.0-rc.1", s)
	}
	return v, nil
}

// Platform returns the platform that this program was built for, as lock files have it:
// linux_amd64.
func Platform() string { return runtime.GOOS + "_" + runtime.GOARCH }

// Path returns where the binary of a version is, below plugin_dir.
func Path(dir, name, version, platform string) string {
	return filepath.Join(dir, name, version, platform, FilePrefix+name)
}
