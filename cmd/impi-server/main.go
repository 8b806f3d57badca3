// Command impi-server is the rendezvous of one IMPI job: every site connects to
// it, learns of the others, and tells it when it has finished. Or it keeps the names of
// ports for several jobs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/names"
	"github.com/openimpi/impi/internal/rendezvous"
)

// Exit codes.
const (
	exitOK     = 0 // every client has finished
	exitFailed = 1 // the job failed; the last line of stderr says why
	exitUsage  = 2 // flags, environment or key file are wrong
)

// release is the version of this program.
const release = "0.1.0"

func main() {
	os.Exit(run(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// run is main for given arguments. It returns the exit status.
func run(args []string, env environment, stdout, stderr io.Writer) int {
	o, err := parse(args, env)
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprint(stdout, help)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "impi-server: %v\nTry impi-server -help.\n", err)
		return exitUsage
	case o.version:
		fmt.Fprintf(stdout, "impi-server %s (IMPI 0.0)\n", release)
		return exitOK
	}
	if err := serve(o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "impi-server: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// serve runs the job, or keeps names until a signal comes.
func serve(o *options, stdout, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("%w; choose another -host or -port", err)
	}
	// Every site's start script waits for this line, which is all of stdout.
	if _, err := fmt.Fprintln(stdout, advertised(ln.Addr())); err != nil {
		ln.Close()
		return fmt.Errorf("stdout: %w", err)
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "impi-server", Level: o.level, JSONFormat: o.json, Output: stderr})
	kept, err := names.NewServer(names.ServerConfig{Auth: o.auth, Logger: log.Named("names")})
	if err != nil {
		ln.Close()
		return err
	}
	if o.names {
		log.Info("keeping names of ports", "address", ln.Addr(), "auth", o.auth)
		return kept.Serve(ctx, ln)
	}
	log.Info("waiting for clients", "clients", o.clients, "address", ln.Addr(), "auth", o.auth, "timeout", o.timeout)
	return rendezvous.Serve(ctx, ln, rendezvous.Config{
		Server: startup.ServerConfig{Clients: o.clients, Auth: o.auth, Limit: o.timeout},
		Logger: log, Names: kept,
	})
}
