// Package cmdline has the command lines of all programs of this repository: commands with their
// flags, what runs them, and what is made of them: completions for shells and man pages. Flags are
// package flag's; a library such as cobra would change the help texts, which are written by hand
// (docs/decisions/0052).
package cmdline

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// WantsHelp reports whether the first argument asks for help.
func WantsHelp(args []string) bool { return first(args, "help", "-h", "-help", "--help") }

// WantsVersion reports whether the first argument asks for the version.
func WantsVersion(args []string) bool { return first(args, "version", "-version", "--version") }

func first(args []string, words ...string) bool {
	return len(args) > 0 && slices.Contains(words, args[0])
}

// Interruptible returns a context that ends when SIGINT or SIGTERM comes. After stop these signals
// end the process again.
func Interruptible() (ctx context.Context, stop func()) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// Main runs a program that SIGINT and SIGTERM interrupt, and ends the process with the status that
// it returns.
func Main(run func(ctx context.Context) int) {
	ctx, _ := Interruptible()
	os.Exit(run(ctx))
}

// WriteJSON writes v as what -json asks for: one indented value.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
