package cmdline

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openimpi/impi/internal/version"
)

// AddCompletion adds the command completion to a program: it prints completions for a shell, and
// has a hidden subcommand for make install. Without a help text it is hidden itself.
func (c *Command) AddCompletion(help string, more ...*Command) {
	all := &Command{Name: completion, Help: help, Hidden: help == "", Commands: more}
	for _, shell := range slices.Sorted(maps.Keys(shells)) {
		all.Commands = append(all.Commands, &Command{Name: shell, Run: func(_ []string, out, _ io.Writer) (int, error) {
			_, err := io.WriteString(out, shells[shell](c))
			return 0, err
		}})
	}
	all.Commands = append(all.Commands, &Command{Name: install, Args: Dir, Hidden: true, Run: func(args []string, _, _ io.Writer) (int, error) {
		return 0, c.Install(append([]string{completion, install}, args...))
	}})
	all.Run = all.NeedsCommand
	c.Commands = append(c.Commands, all)
}

const (
	completion = "completion"
	install    = "install"
)

// WantsInstall reports whether a program is called by make install: with "completion install
// FOLDER".
func WantsInstall(args []string) bool {
	return len(args) == 3 && args[0] == completion && args[1] == install
}

// scripts are where shells look for the completions of a program, below share.
var scripts = map[string]string{
	"bash": "bash-completion/completions/%s", "fish": "fish/vendor_completions.d/%s.fish", "zsh": "zsh/site-functions/_%s",
}

// Install writes man pages and completions of a program below a folder like /usr/local/share. It is
// called if WantsInstall is true.
func (c *Command) Install(args []string) error {
	if !WantsInstall(args) {
		return errors.New("write: completion install FOLDER")
	}
	files := map[string]string{}
	for _, p := range c.places() {
		if p.Help != "" {
			files[filepath.Join("man/man1", strings.ReplaceAll(p.path, " ", "-")+".1")] = p.page(version.String())
		}
	}
	for shell, path := range scripts {
		if c.Flags != nil || len(c.Commands) > 0 {
			files[fmt.Sprintf(path, c.Name)] = shells[shell](c)
		}
	}
	for path, text := range files {
		path = filepath.Join(args[2], path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil { //nolint:gosec // all users read them
			return err
		}
	}
	return nil
}
