package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openimpi/impi/plugins/host"
)

type vendor struct {
	file     string   // absolute
	settings []string // lines of the transport's config block
	lines    []string // further lines of its block
	library  string   // measures the library without impi
}

type list []string

func (l *list) String() string { return strings.Join(*l, ", ") }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

func (o *options) checkVendor() error {
	if !strings.Contains(o.transport, "/") {
		if len(o.vendor.settings) > 0 || len(o.vendor.lines) > 0 {
			return errors.New("-setting and -block are for a plugin: give the path of its file to -transport, as ./impi-transport-ofi")
		}
		return nil
	}
	name, ok := strings.CutPrefix(filepath.Base(o.transport), host.Prefix)
	if !ok || name == "" {
		return fmt.Errorf("-transport %s: the file of a plugin is called %sNAME, where NAME is its transport's", o.transport, host.Prefix)
	}
	file, err := filepath.Abs(o.transport)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(file); err != nil {
		return fmt.Errorf("-transport %s: %w", o.transport, err)
	}
	o.vendor.file, o.transport = file, name
	return nil
}

func (v *vendor) block(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin_dir = %q\ntransport %q {\n  plugin = %q\n", filepath.Dir(v.file), name, filepath.Base(v.file))
	for _, s := range v.lines {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	b.WriteString("  config {\n")
	for _, s := range v.settings {
		fmt.Fprintf(&b, "    %s\n", s)
	}
	b.WriteString("  }\n}\n")
	return b.String()
}

// libraryContender is a command that measures what the plugin is made of, and prints figures as our
// loops do.
func (o *options) libraryContender() contender {
	return contender{
		name:  "library",
		skips: func(bench string) bool { return !benchmarks[bench].floor },
		run: func(ctx context.Context, bench string, sizes []int) ([]figure, error) {
			args := loopsOf(bench, o.seconds, sizes, strings.Fields(o.vendor.library)...)
			return figures(exec.CommandContext(ctx, args[0], args[1:]...)) //nolint:gosec // it is the user's
		},
	}
}
