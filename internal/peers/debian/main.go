// Command debian runs a command in another release of Debian than this machine has, with this
// checkout: so the MPIs of that release, or its compilers, take part in tests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
)

const help = `Runs a command in another release of Debian, with this checkout, Go and Go's caches at
the same places. The release is kept in a folder beside the peers (make peers), and made by
debootstrap the first time, which takes some minutes and 1.5 GB. It takes root, as folders of this
machine are mounted there, where nobody else sees them.

usage: go run ./internal/peers/debian [-release NAME] [-packages NAMES] COMMAND [ARGUMENT ...]

  -release NAME    trixie, sid, ... (default "trixie", which has Open MPI 5 and MPICH 4.2)
  -packages NAMES  packages to install beside the MPIs and a C compiler, with commas between

examples:
  go run ./internal/peers/debian mpirun.openmpi --version
  go run ./internal/peers/debian go test -run Native ./internal/native ./internal/peers
  go run ./internal/peers/debian -release sid go test -run RealLibraries -v ./internal/native

exit status: that of the command; 1 if the release cannot be had; 2 for wrong usage
`

// usual are the packages of each release: what tests of native sites take.
const usual = "ca-certificates,gcc,git,libc6-dev,libmpich-dev,libopenmpi-dev,make,mpich,openmpi-bin,procps"

var (
	releases = regexp.MustCompile(`^[a-z]+$`)
	packages = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]*(,[a-z0-9][a-z0-9+.-]*)*$`)
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == inside {
		fmt.Fprintln(os.Stderr, "debian:", enter(os.Args[2:]))
		os.Exit(1)
	}
	set := flag.NewFlagSet("debian", flag.ContinueOnError)
	set.Usage = func() {}
	release := set.String("release", "trixie", "")
	more := set.String("packages", "", "")
	switch err := set.Parse(os.Args[1:]); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(help)
		return
	case err != nil:
		os.Exit(2) // the set has said why
	case set.NArg() == 0:
		wrong("which command is to run there?")
	case !releases.MatchString(*release):
		wrong("-release %q: a name such as trixie is wanted", *release)
	case *more != "" && !packages.MatchString(*more):
		wrong("-packages %q: names of packages are wanted, with commas between", *more)
	}
	names := strings.Split(usual, ",")
	if *more != "" {
		names = append(names, strings.Split(*more, ",")...)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *release, names, set.Args())
	stop()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.ExitCode() > 0:
		os.Exit(failed.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "debian:", err)
		os.Exit(1)
	}
}

func wrong(format string, a ...any) {
	fmt.Fprintf(os.Stderr, "debian: "+format+"; -help says more\n", a...)
	os.Exit(2)
}

func run(ctx context.Context, release string, names, command []string) error {
	r, err := open(ctx, release)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.install(ctx, names); err != nil {
		return err
	}
	return r.run(ctx, command)
}
