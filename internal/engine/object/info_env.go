package object

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/bootstrap"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/wireup"
)

func InfoEnv() *proc.Info {
	proc.ProcessMu.Lock()
	defer proc.ProcessMu.Unlock()
	if proc.ThisProcess == nil {
		return nil
	}
	return env(proc.ThisProcess)
}

// InfoCreateEnv returns the info of MPI_Info_create_env, which may be called at any time, before
// Init as well (MPI-4.1, 11.2). The info has no number of procs if the launcher did not have it.
func InfoCreateEnv() *proc.Info {
	if i := InfoEnv(); i != nil {
		return i
	}
	wdir, _ := os.Getwd()
	procs, err := strconv.Atoi(os.Getenv(wireup.EnvProcs))
	if _, byNode := os.LookupEnv(wireup.EnvSocket); err != nil && !byNode && !bootstrap.Started() {
		procs = 1
	}
	return Environment(os.Args, procs, proc.ProcessorName(), wdir)
}

// env returns MPI_INFO_ENV, made at the first call, as few programs need it.
func env(p *proc.Process) *proc.Info {
	p.Environment.Do(func() {
		wdir, _ := os.Getwd() // it may be unknown
		host := proc.ProcessorName()
		p.Info = Environment(os.Args, p.Job.Size(), host, wdir)
	})
	return p.Info
}

// Environment makes MPI_INFO_ENV (MPI-4.1, 11.2), without values that are unknown or too long.
func Environment(args []string, procs int, host, wdir string) *proc.Info {
	i := proc.FixedInfo()
	if len(args) == 0 { // possible: the caller of exec chooses the arguments
		args = []string{""}
	}
	known := ""
	if procs > 0 {
		known = strconv.Itoa(procs)
	}
	for _, p := range []proc.InfoPair{
		{Key: "command", Value: args[0]},
		{Key: "argv", Value: strings.Join(args[1:], " ")},
		{Key: "maxprocs", Value: known},
		{Key: "host", Value: host},
		{Key: "arch", Value: runtime.GOARCH},
		{Key: "wdir", Value: wdir},
		{Key: "thread_level", Value: "MPI_THREAD_MULTIPLE"},
	} {
		if p.Value != "" && len(p.Value) <= proc.MaxInfoValue {
			*i.Pairs() = append(*i.Pairs(), p)
		}
	}
	return i
}
