// Package trial is the subcommand native of impi-node: it builds the shim for a site's own MPI, and
// tries it.
package trial

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/native"
)

// Help is what the subcommand says of itself.
//
//go:embed help.txt
var Help string

// bad is the exit status if that MPI cannot be used.
const bad = 1

type command struct {
	cc, file, launch string
	json             bool
	out, complaints  io.Writer
}

// Command returns the command impi-node native, with build and test, and a hidden command for the
// launcher: a process of the test, with a shim.
func Command() *cmdline.Command {
	c := &command{}
	add := func(name string, does func(context.Context) error) *cmdline.Command {
		x := &cmdline.Command{Name: name, Flags: cmdline.NewFlags()}
		x.Flags.StringVar(&c.cc, "cc", "mpicc", cmdline.File)
		x.Run = func(_ []string, out, errs io.Writer) (int, error) {
			c.out, c.complaints = out, errs
			return 0, does(context.Background())
		}
		return x
	}
	build, test := add("build", c.build), add("test", c.test)
	build.Flags.StringVar(&c.file, "o", "", cmdline.File)
	test.Flags.StringVar(&c.launch, "launch", "", "")
	test.Flags.BoolVar(&c.json, "json", false, "")
	rank := &cmdline.Command{Name: rank, Args: cmdline.File, Hidden: true, Run: func(args []string, out, errs io.Writer) (int, error) {
		if len(args) != 1 {
			return bad, errors.New("it needs the shim")
		}
		return native.Selftest(args[0], out, errs), nil
	}}
	return &cmdline.Command{Name: "native", Help: Help, Commands: []*cmdline.Command{build, test, rank}}
}

const rank = "rank"

func (c *command) build(ctx context.Context) error {
	path, info, err := native.Build(ctx, c.cc, c.says)
	if err != nil {
		return err
	}
	if c.file != "" {
		if err := copyTo(c.file, path); err != nil {
			return err
		}
		path = c.file
	}
	fmt.Fprintf(c.out, "%s\n%s\n", strings.TrimSpace(info.Vendor+" "+info.Version), path)
	return nil
}

func (c *command) says(what string) { fmt.Fprintln(c.complaints, "impi-node:", what) }

// copyTo copies the shim into a file, of which nobody sees a part.
func copyTo(file, shim string) error {
	b, err := os.ReadFile(shim)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".shim-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when all went well
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
