// Command make writes man pages and completions of installed programs below a folder like /usr/local/share,
// for make install. It asks the programs for their help.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openimpi/impi/internal/manual"
	"github.com/openimpi/impi/internal/version"
)

func main() {
	bin := flag.String("bin", "bin", "folder of the programs")
	out := flag.String("out", "", "folder to write to, as /usr/local/share")
	flag.Parse()
	if err := write(*bin, *out, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "manual: %v\n", err)
		os.Exit(1)
	}
}

// places are where shells look for completions of a program, below share.
var places = map[string]string{
	"bash": "bash-completion/completions/%s", "fish": "fish/vendor_completions.d/%s.fish", "zsh": "zsh/site-functions/_%s",
}

func write(bin, out string, programs []string) error {
	if out == "" || len(programs) == 0 {
		return errors.New("usage: make -bin FOLDER -out FOLDER PROGRAM...")
	}
	const node = "impi-node"
	for _, p := range programs {
		help, err := run(filepath.Join(bin, p), "-h")
		if err != nil {
			return err
		}
		commands := []manual.Command{{Name: p, Help: help}}
		if p == node {
			verbs, err := run(filepath.Join(bin, p), "completion", "commands")
			if err != nil {
				return err
			}
			for _, verb := range strings.Fields(verbs) {
				text, err := run(filepath.Join(bin, p), "help", verb)
				if err != nil {
					return err
				}
				commands = append(commands, manual.Command{Name: p + " " + verb, Help: text})
			}
		}
		for i := range commands {
			c := &commands[i]
			if err := put(filepath.Join(out, "man/man1", strings.ReplaceAll(c.Name, " ", "-")+".1"), c.Page(version.String())); err != nil {
				return err
			}
		}
		if p != node {
			continue
		}
		for _, shell := range manual.Shells {
			script, err := run(filepath.Join(bin, p), "completion", shell)
			if err != nil {
				return err
			}
			if err := put(filepath.Join(out, fmt.Sprintf(places[shell], p)), script); err != nil {
				return err
			}
		}
	}
	return nil
}

func put(path, text string) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644))
}

func run(name string, args ...string) (string, error) {
	b, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(b), nil
}
