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

	"github.com/openimpi/impi/internal/pluginlock"
	"github.com/openimpi/impi/plugins/host"
	"github.com/openimpi/impi/plugins/sdk"
)

// scaffold is a complete transport plugin, as templates.
//
//go:embed scaffold/*.tmpl
var scaffold embed.FS

const (
	ourModule = "github.com/openimpi/impi"
	sdkModule = ourModule + "/" + sdkFolder // module that a plugin requires
	sdkFolder = "plugins/sdk"               // its folder in a source tree
)

type seed struct {
	Name, Module, Vendor, Go string
	Version                  string   // of the SDK
	Replace                  string   // source tree with the SDK, or empty
	Requires                 []string // requirements of the SDK in Replace
}

func pluginsNew(o *pluginOptions, std streams) error {
	name := strings.TrimPrefix(o.args[0], host.Prefix)
	if !pluginlock.ValidName(name) {
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
	of := "release " + s.Version
	if s.Replace != "" {
		of = "in " + filepath.Join(s.Replace, sdkFolder)
	}
	_, err := fmt.Fprintf(std.out, "%s is a working transport, which builds against the SDK %s. Next:\n  cd %s\n  less README.md\n", dir, of, dir)
	return err
}

func goVersion() string {
	v := strings.TrimPrefix(runtime.Version(), "go")
	parts := strings.SplitN(v, ".", 3)
	if len(parts) < 2 {
		return "1.26"
	}
	return parts[0] + "." + strings.TrimRight(parts[1], "-abcdefghijklmnopqrstuvwxyz ") + ".0"
}

var errNoSource = errors.New("this impi-node was built from no release and is not beside the source of the SDK, so that there is nothing that " +
	"a module could require: give a source tree of impi, with -impi CHECKOUT")

// require sets which SDK the new module requires: that of the checkout that was given; else that of
// the checkout in which this program or the working folder is; else the one that make install has
// put beside this program; else the release of the SDK that belongs to this program's release.
func (s *seed) require(given, dir string) error {
	info, _ := debug.ReadBuildInfo()
	self, _ := os.Executable() // if it is unknown, the other places are tried
	here, _ := os.Getwd()
	return s.requireOf(given, dir, info, filepath.Dir(self), here, "/usr/bin") // packages install shared files below /usr
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
	for _, at := range places {
		if root := filepath.Join(at, "..", "share", "impi", "sdk"); filepath.IsAbs(at) && isCheckout(root) {
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

// isCheckout reports whether a folder is the root of a source tree of impi, or has the SDK in the
// same place as one.
func isCheckout(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, sdkFolder, "go.mod"))
	return err == nil && bytes.HasPrefix(mod, []byte("module "+sdkModule+"\n"))
}

// release matches versions that are tags. Those of other commits, or with changed files, are
// longer.
var release = regexp.MustCompile(`^v\d+\.\d+\.\d+$`)

// releaseOf returns the release of the SDK that was published with the release that a program was
// built from; empty if it was built from another commit.
func releaseOf(info *debug.BuildInfo) string {
	if info == nil || info.Main.Path != ourModule || !release.MatchString(info.Main.Version) {
		return ""
	}
	return "v" + sdk.Version
}

// requirement matches the lines of a go.mod that require a module, except those of modules that
// only tests use, which have another comment.
var requirement = regexp.MustCompile(`(?m)^\s+(\S+ v\S+)( // indirect)?$`)

// against makes the new module build against a checkout without network access: it copies the
// requirements and checksums of the SDK there.
func (s *seed) against(checkout, dir string) error {
	root, err := filepath.Abs(checkout)
	if err != nil {
		return err
	}
	if !isCheckout(root) {
		return fmt.Errorf("-impi %s: that is no checkout of %s", checkout, ourModule)
	}
	mod, err := os.ReadFile(filepath.Join(root, sdkFolder, "go.mod"))
	if err != nil {
		return err
	}
	for _, m := range requirement.FindAllStringSubmatch(string(mod), -1) {
		s.Requires = append(s.Requires, m[1]+" // indirect")
	}
	sums, err := os.ReadFile(filepath.Join(root, sdkFolder, "go.sum"))
	if err != nil {
		return err
	}
	s.Replace, s.Version = root, "v"+sdk.Version
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
