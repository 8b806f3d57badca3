// Files measures how fast programs in C read and write a file together, with our library and with
// MPICH's, by turns, and prints the table of docs/files.md.
//
//	go run ./internal/performance/files -bin bin -in /dev/shm,/var/tmp
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

//go:embed testdata/files.c
var source []byte

func main() {
	bin := flag.String("bin", "bin", "`folder` of impicc and impiexec")
	in := flag.String("in", "/dev/shm,/var/tmp", "`folders` for the file, with commas")
	procs := flag.String("procs", "2,4", "how many procs, with commas")
	repeat := flag.Int("repeat", 7, "how many `runs` of each there are, by turns")
	calls := flag.Int("calls", 5, "how many `calls` of each kind a run measures")
	flag.Parse()
	if err := run(context.Background(), *bin, strings.Split(*in, ","), strings.Split(*procs, ","), *repeat, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "files:", err)
		os.Exit(1)
	}
}

type library struct{ compiler, launcher, program string }

func run(ctx context.Context, bin string, folders, procs []string, repeat, calls int) error {
	dir, err := os.MkdirTemp("", "impi-files-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := filepath.Join(dir, "files.c")
	if err := os.WriteFile(c, source, 0o600); err != nil {
		return err
	}
	libraries := []*library{{compiler: filepath.Join(bin, "impicc"), launcher: filepath.Join(bin, "impiexec")}, {compiler: "mpicc.mpich", launcher: "mpiexec.mpich"}}
	for i, l := range libraries {
		l.program = filepath.Join(dir, "files-"+strconv.Itoa(i))
		if out, err := exec.CommandContext(ctx, l.compiler, "-O2", "-o", l.program, c).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", l.compiler, err, out)
		}
	}
	fmt.Println("| in | procs | pattern | write_all | read_all | write | read |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, folder := range folders {
		for _, n := range procs {
			if err := compare(ctx, libraries, folder, n, repeat, calls); err != nil {
				return err
			}
		}
	}
	return nil
}

func compare(ctx context.Context, libraries []*library, folder, procs string, repeat, calls int) error {
	times := make([]map[string][]float64, len(libraries)) // by pattern and operation
	var order []string
	for range repeat {
		for i, l := range libraries {
			name := filepath.Join(folder, fmt.Sprintf("impi-files-%d", os.Getpid()))
			out, err := exec.CommandContext(ctx, l.launcher, "-n", procs, l.program, name, strconv.Itoa(calls)).Output()
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", l.launcher, err, out)
			}
			if times[i] == nil {
				times[i] = map[string][]float64{}
			}
			for line := range strings.Lines(string(out)) {
				words := strings.Fields(line)
				if len(words) != 3 {
					return fmt.Errorf("%s has printed %q", l.launcher, line)
				}
				us, err := strconv.ParseFloat(words[2], 64)
				if err != nil {
					return err
				}
				key := words[0] + " " + words[1]
				times[i][key] = append(times[i][key], us)
				if !slices.Contains(order, key) {
					order = append(order, key)
				}
			}
		}
	}
	for i := 0; i+3 < len(order); i += 4 {
		pattern, _, _ := strings.Cut(order[i], " ")
		fmt.Printf("| %s | %s | %s |", folder, procs, pattern)
		for _, key := range order[i : i+4] {
			ours, theirs := median(times[0][key]), median(times[1][key])
			fmt.Printf(" %.0f, %.0f: %s |", ours, theirs, ratio(theirs/ours))
		}
		fmt.Println()
	}
	return nil
}

func ratio(r float64) string {
	if r < 1 {
		return fmt.Sprintf("**%.2f**", r)
	}
	return fmt.Sprintf("%.2f", r)
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
