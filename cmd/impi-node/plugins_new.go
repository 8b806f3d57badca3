package main

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"text/template"

	"github.com/openimpi/impi/plugins/host"
)

// scaffold is a complete transport plugin, as templates.
//
//go:embed scaffold/*.tmpl
var scaffold embed.FS

const ourModule = "github.com/openimpi/impi"

// seed has the values for the templates.
type seed struct {
	Name, Module, Vendor, Go string
	Version                  string   // of our module
	Replace                  string   // a checkout of it, or empty
	Requires                 []string // what the checkout requires
}

var transportName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// pluginsNew runs impi-node plugins new.
func pluginsNew(o *pluginOptions, std streams) error {
	name := strings.TrimPrefix(o.args[0], host.Prefix)
	if !transportName.MatchString(name) {
		return fmt.Errorf("%q is no name for a transport: use lower-case letters, digits and '-', beginning with a letter", name)
	}
	if strings.ContainsAny(o.vendor, "\"\\\n`") {
		return fmt.Errorf("-vendor %q: leave out quotes, backslashes and line ends", o.vendor)
	}
	s := seed{Name: name, Module: o.module, Vendor: o.vendor, Go: goVersion()}
	s.Module = cmp.Or(s.Module, "example.com/"+host.Prefix+name)
	dir := host.Prefix + name
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s exists already; nothing was written", dir)
		}
		return err
	}
	if err := s.require(o.impi, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.write(dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	of := s.Version
	if s.Replace != "" {
		of = "the source in " + s.Replace
	}
	_, err := fmt.Fprintf(std.out, "%s is a working transport, which builds against impi %s. Next:\n  cd %s\n  less README.md\n", dir, of, dir)
	return err
}

// goVersion is the language version of a new module.
func goVersion() string {
	v := strings.TrimPrefix(runtime.Version(), "go")
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 2 {
		return "1.26"
	}
	return parts[0] + "." + strings.TrimRight(parts[1], "-abcdefghijklmnopqrstuvwxyz ") + ".0"
}

// errNoSource is the error where a new module would require what cannot be had.
var errNoSource = errors.New("this impi-node was not installed from a release, so there is none that a module could require: " +
	"give the source tree of impi from which it was built, with -impi CHECKOUT")

// require says of which impi the new module is: of the checkout that was given, else of the one in
// which this program or the working folder is, else of the release from which this program was installed.
func (s *seed) require(given, dir string) error {
	info, _ := debug.ReadBuildInfo()
	self, _ := os.Executable() // without it there are other places
	here, _ := os.Getwd()
	return s.requireOf(given, dir, info, filepath.Dir(self), here)
}

func (s *seed) requireOf(given, dir string, info *debug.BuildInfo, places ...string) error {
	if given != "" {
		return s.against(given, dir)
	}
	for _, at := range places {
		if root := checkoutAbove(at); root != "" {
			return s.against(root, dir)
		}
	}
	if s.Version = releaseOf(info); s.Version == "" {
		return errNoSource
	}
	return nil
}

// checkoutAbove finds the source tree of impi in which a folder is; empty if it is in none.
func checkoutAbove(dir string) string {
	for filepath.IsAbs(dir) {
		if isCheckout(dir) {
			return dir
		}
		if up := filepath.Dir(dir); up != dir {
			dir = up
			continue
		}
		break
	}
	return ""
}

// isCheckout reports whether a folder is the root of a source tree of impi.
func isCheckout(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && bytes.HasPrefix(mod, []byte("module "+ourModule+"\n"))
}

// releaseOf is the version of the module from which a program was installed; empty if it was built
// from a source tree: only what was downloaded has a checksum.
func releaseOf(info *debug.BuildInfo) string {
	if info == nil || info.Main.Path != ourModule || info.Main.Sum == "" {
		return ""
	}
	return info.Main.Version
}

var requirement = regexp.MustCompile(`(?m)^\s+(\S+ v\S+)( // indirect)?$`)

// against makes the new module build against a checkout without network access: it copies
// the checkout's requirements and checksums.
func (s *seed) against(checkout, dir string) error {
	root, err := filepath.Abs(checkout)
	if err != nil {
		return err
	}
	if !isCheckout(root) {
		return fmt.Errorf("-impi %s: that is no checkout of %s", checkout, ourModule)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
		s.Requires = append(s.Requires, m[1]+" // indirect")
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return err
	}
	s.Replace, s.Version = root, "v0.0.0"
	return os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644)
}

func (s *seed) write(dir string) error {
	t, err := template.New("").Delims("[[", "]]").ParseFS(scaffold, "scaffold/*.tmpl")
	if err != nil {
		return err
	}
	for _, x := range t.Templates() {
		if x.Name() == "" {
			continue
		}
		var b bytes.Buffer
		if err := x.Execute(&b, s); err != nil {
			return err
		}
		name := strings.TrimSuffix(x.Name(), ".tmpl")
		if name == "gitignore" {
			name = ".gitignore"
		}
		if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
