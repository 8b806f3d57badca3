// Command run measures what docs/performance.md says, and writes it.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/performance"
	"github.com/openimpi/impi/internal/provenance"
)

//go:embed help.txt
var help string

func main() { cmdline.Main(run) }

func run(ctx context.Context) int {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	bin := flags.String("bin", "bin", "")
	only := flags.String("only", "", "")
	data := flags.String("data", "docs/performance.json", "")
	out := flags.String("out", "docs/performance.md", "")
	render := flags.Bool("render", false, "")
	err := flags.Parse(os.Args[1:])
	pattern, wrong := regexp.Compile(*only)
	if err = errors.Join(err, wrong); err != nil {
		var names []string
		for _, q := range performance.Questions {
			names = append(names, q.Name)
		}
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "performance:", err)
		}
		fmt.Fprintf(os.Stderr, help, strings.Join(names, ", "))
		return 2
	}
	if *render {
		pattern = nil
	}
	if err := measure(ctx, *bin, *data, *out, pattern); err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		return 1
	}
	return 0
}

// measure answers the questions that match, saves each answer, and writes the page.
func measure(ctx context.Context, bin, data, out string, only *regexp.Regexp) error {
	answers, err := read(data)
	if err != nil {
		return err
	}
	for _, q := range performance.Questions {
		if only == nil || !only.MatchString(q.Name) {
			continue
		}
		a, err := ask(ctx, bin, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
		answers = slices.DeleteFunc(answers, func(x performance.Answer) bool { return x.Question == q.Name })
		answers = append(answers, a)
		b, err := json.MarshalIndent(answers, "", " ")
		if err == nil {
			err = os.WriteFile(data, append(b, '\n'), 0o644)
		}
		if err != nil {
			return err
		}
	}
	var page bytes.Buffer
	if err := performance.Write(&page, answers); err != nil {
		return err
	}
	return os.WriteFile(out, page.Bytes(), 0o644)
}

func read(data string) (answers []performance.Answer, err error) {
	b, err := os.ReadFile(data)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &answers)
	}
	return answers, err
}

func ask(ctx context.Context, bin string, q performance.Question) (a performance.Answer, err error) {
	a = performance.Answer{Question: q.Name, Machine: performance.ThisMachine(), Command: append([]string{"impi-bench"}, q.Args...)}
	if a.Made, err = provenance.Now("."); err != nil {
		return a, err
	}
	begun := time.Now()
	fmt.Fprintf(os.Stderr, "%s (%s)\n", q.Title, q.Name)
	args := slices.Insert(slices.Clone(q.Args), 0, "-json")
	if q.Args[0][0] != '-' { // q is a command of its own
		args = append(slices.Clone(q.Args), "-json")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, a.Command[0]), args...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	printed, err := cmd.Output()
	if err != nil {
		return a, err
	}
	a.Figures, err = performance.Parse(printed)
	fmt.Fprintf(os.Stderr, "  took %v\n", time.Since(begun).Round(time.Second))
	return a, err
}
