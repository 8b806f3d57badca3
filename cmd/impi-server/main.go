// Command impi-server is the rendezvous of one IMPI job: every site connects to
// it, learns of the others, and tells it when it has finished. Or it keeps the names of
// ports for several jobs.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/internal/cmdline"
	"github.com/openimpi/impi/internal/launch"
	"github.com/openimpi/impi/internal/listen"
	"github.com/openimpi/impi/internal/loglimit"
	"github.com/openimpi/impi/internal/names"
	"github.com/openimpi/impi/internal/rendezvous"
	"github.com/openimpi/impi/plugins/sdk/transports/socket"
)

//go:embed help.txt
var help string

// Exit codes.
const (
	exitOK     = 0   // every client has finished
	exitFailed = 1   // the job failed; the last line of stderr says why
	exitUsage  = 2   // flags, environment or key file are wrong
	exitSignal = 128 // plus the number of the signal that ended it
)

func main() {
	os.Exit(run(os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

func run(args []string, env environment, stdout, stderr io.Writer) int {
	c, o := newCommand(env)
	c.Run = func(_ []string, out, errs io.Writer) (int, error) {
		err := serve(o, out, errs)
		var by interrupt
		switch {
		case err == nil:
			return exitOK, nil
		case errors.As(err, &by) && errors.Is(err, startup.ErrLeft):
			return exitSignal + int(by.signal), fmt.Errorf("stopped by %s: the job goes on without its server", launch.SignalName(by.signal))
		case errors.As(err, &by):
			return exitSignal + int(by.signal), fmt.Errorf("stopped by %s before the job had ended: the job ends at all of its sites", launch.SignalName(by.signal))
		}
		return exitFailed, err
	}
	return c.Execute(args, stdout, stderr)
}

type interrupt struct{ signal syscall.Signal }

func (i interrupt) Error() string { return "its operator sent " + launch.SignalName(i.signal) }

// Is lets a running job continue after SIGTERM, with which services are stopped and restarted. The
// other signals come from a terminal.
func (i interrupt) Is(target error) bool {
	return target == rendezvous.ErrLeave && i.signal == syscall.SIGTERM
}

// untilSignal returns a context that ends when somebody ends the server. reload is called for
// SIGHUP, one call at a time; if it is nil, SIGHUP ends the server.
func untilSignal(reload func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	c, hangup := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGINT, syscall.SIGTERM)
	if reload != nil {
		signal.Notify(hangup, syscall.SIGHUP)
	} else {
		signal.Notify(c, syscall.SIGHUP)
	}
	go func() {
		select {
		case s := <-c:
			cancel(interrupt{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	go func() { // apart, as reload reads files, which may take long
		for {
			select {
			case <-hangup:
				reload()
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(c)
		signal.Stop(hangup)
		cancel(nil)
	}
}

// reload reads the files that the flags name again. If one of them has a fault, nothing changes.
// The result is logged at any level, as the operator has asked for it.
func (o *options) reload(log hclog.Logger) {
	id, level := o.id, o.level
	var err error
	if o.raw.cert != "" {
		id, err = o.raw.identity()
	}
	if err == nil && o.raw.levelFile != "" {
		level, err = readLevel(o.raw.levelFile)
	}
	if err != nil {
		log.Error("reloaded nothing: correct that and send SIGHUP again", "error", err)
		return
	}
	if id != nil {
		o.id.Replace(id)
		loglimit.ReportReload(log, hclog.Info, "new connections use the certificate as it is in its file now, and those that there are once their sites have new ones, too", "certificate", id.Name())
	}
	if level != o.level {
		was := o.level
		loglimit.SetLevel(log, level, func() { loglimit.ReportReload(log, hclog.Info, "log level", "from", was, "to", level) })
		o.level = level
	} else if id == nil {
		loglimit.ReportReload(log, hclog.Info, "SIGHUP: no flag names a file that has changed")
	}
}

// longest returns -resume for package rendezvous: -1 stands for 0, which there means the default.
func (o *options) longest() time.Duration {
	return cmp.Or(o.resume, -1)
}

// listenAt listens at a port of -host, which is an address, a name or empty.
func (o *options) listenAt(ctx context.Context, lc net.ListenConfig, port uint16) (net.Listener, error) {
	if at, err := netip.ParseAddr(o.host); err == nil {
		return listen.At(ctx, lc, netip.AddrPortFrom(at, port))
	}
	return lc.Listen(ctx, "tcp", net.JoinHostPort(o.host, strconv.Itoa(int(port))))
}

func serve(o *options, stdout, stderr io.Writer) error {
	log, limiter := loglimit.New(hclog.LoggerOptions{Name: "impi-server", Level: o.level, JSONFormat: o.json, Output: stderr})
	defer limiter.Close()
	var reload func()
	if cmdline.HangupReloads() {
		reload = func() { o.reload(log) }
	}
	ctx, stop := untilSignal(reload)
	defer stop()
	lc := net.ListenConfig{KeepAliveConfig: socket.KeepAlive(socket.DefaultSilence)}
	var ln net.Listener
	err := listen.First(o.ports, o.port, func(port uint16) (taken bool, err error) {
		ln, err = o.listenAt(ctx, lc, port)
		return errors.Is(err, syscall.EADDRINUSE), err
	})
	if err != nil {
		return fmt.Errorf("%w; %s", err, remedy(err, o))
	}
	// Every site's start script waits for this line, which is all of stdout.
	if _, err := fmt.Fprintln(stdout, advertised(ln.Addr())); err != nil {
		ln.Close()
		return fmt.Errorf("stdout: %w", err)
	}
	if o.auth.None && !isLoopback(ln.Addr()) {
		log.Warn("anybody who reaches this address can take part: start with -key-file FILE, or with -host 127.0.0.1 if all sites are on this machine", "address", ln.Addr(), "auth", o.auth)
	}
	if problem := o.raw.openKey(); problem != "" {
		log.Warn("others can read the key", "file", o.raw.keyFile, "mode", problem, "remedy", "chmod 600 "+o.raw.keyFile)
	}
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
	err = rendezvous.Serve(ctx, ln, rendezvous.Config{
		Server: startup.ServerConfig{Clients: o.clients, Auth: o.auth, Limit: o.timeout, SurvivesLoss: true, Spares: o.spares},
		Logger: log, Names: kept,
		Identity: o.id, NeedTLS: o.needTLS, MaxResume: o.longest(),
	})
	if by, ok := errors.AsType[interrupt](context.Cause(ctx)); ok && err != nil && !errors.Is(err, startup.ErrLeft) {
		return by
	}
	return err
}

func remedy(err error, o *options) string {
	switch {
	case errors.Is(err, listen.ErrInUse):
		return "`ss -ltnp` names the programs"
	case errors.Is(err, syscall.EADDRINUSE):
		return "another program has that port, which `ss -ltnp` names: end it, or choose another -port"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "-host " + o.host + " is no address of this machine: `ip -br address` shows those that are"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 are for root: choose a -port from 1024 to 65535"
	}
	return "choose another -host or -port"
}
