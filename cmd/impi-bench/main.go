// impi-bench measures how fast messages are, beside other MPI implementations
// and beside the bare sockets, in one run. Figures of a shared machine drift;
// ratios of one run do not.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openimpi/impi/internal/cmdline"
)

//go:embed help/usage.txt
var usage string

//go:embed help/examples.txt
var examples string

type options struct {
	benches   []string
	sizes     []int // empty: the default sizes of each benchmark
	seconds   float64
	repeat    int
	rounds    int           // turns of each variant in a repetition
	limit     time.Duration // maximum time of one run
	transport string        // "auto", or a transport's name
	vendor    vendor
	plane     string // data plane that the route pins; empty: none
	path      string // "direct" or "channel"
	survive   bool   // the job continues without lost procs
	resume    string // "true", "false", or empty: the node's default
	lent      bool   // messages are in memory of windows, which links by data plane "rdma" lend
	calls     bool   // the procs measure their MPI calls
	looks     string // interval at which computing procs make progress; empty: never
	timeline  bool   // also write the calls to a timeline
	each      bool   // with timeline: short calls one by one too
	ranks     []int  // each value of -procs
	procs     int    // the value of -procs that is measured now
	floor     bool
	peers     []string
	native    bool     // also measure each peer as the MPI of an own site
	cc        string   // the compiler of the site's MPI, if there are no peers
	base      string   // contender with which all others are compared; empty: ours with each
	beside    []string // names of variants
	json      bool
	quiet     bool
	node      string
	machines  *onMachines // nil: everything runs on this machine
	on        []string    // ways to reach machines that are made for the run
	counts    []int       // numbers of machines to use
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	if len(args) > 0 && slices.Contains(childWords, args[0]) {
		if err := child(args); err != nil {
			fmt.Fprintln(os.Stderr, "impi-bench:", err)
			return 1
		}
		return 0
	}
	if isStartupPart(args) {
		return exitStatus(runStartupPart(args[1:]))
	}
	c, _ := newCommand()
	return c.Execute(args, os.Stdout, os.Stderr)
}

func measured(bench func(ctx context.Context, out io.Writer) error) func([]string, io.Writer, io.Writer) (int, error) {
	return func(_ []string, out, _ io.Writer) (int, error) {
		ctx, stop := cmdline.Interruptible()
		defer stop()
		return 0, bench(ctx, out)
	}
}

// exitStatus prints err, if any, and returns the exit status for it.
func exitStatus(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "impi-bench:", err)
		return 1
	}
	return 0
}

// The hidden first words of the processes that impi-bench starts of its own program.
const (
	workerWord  = "worker"
	floorWord   = "floor"
	insideWord  = "inside"
	turnsWord   = "turns"
	partnerWord = "partner"
)

var childWords = []string{workerWord, floorWord, insideWord, turnsWord, partnerWord}

func child(args []string) error {
	if args[0] == partnerWord {
		return runPartner()
	}
	if len(args) < 4 {
		return fmt.Errorf("%s is started by impi-bench itself", args[0])
	}
	switch args[0] {
	case workerWord:
		return runWorker(args[1:])
	case turnsWord:
		return runTurns(args[1:])
	case insideWord:
		return runInsideChild(args[1:])
	}
	return runFloorChild(args[1:])
}

func newCommand() (*cmdline.Command, *options) {
	o := &options{}
	c := cmdline.NewProgram("impi-bench", "", "")
	c.Args = "`" + strings.Join(append(slices.Clone(benchNames), groupNames()...), "|") + "`"
	f := c.Flags
	sizes := f.String("sizes", "", "message sizes in bytes, as 8,64K,1M (default: depends on the benchmark)")
	f.Float64Var(&o.seconds, "seconds", 0.2, "how long each size is measured in each repetition")
	f.IntVar(&o.repeat, "repeat", 5, "repetitions, of which the median counts")
	f.IntVar(&o.rounds, "rounds", 10, "with -beside: turns that each takes in a repetition; 1: whole runs, one after the other")
	f.DurationVar(&o.limit, "limit", time.Minute, "how long one run of one implementation may take")
	f.StringVar(&o.transport, "transport", "auto", "transport to use: shm, unix, tcp, tcp+tls, quic, auto, or the path of a plugin's file, as ./impi-transport-ofi")
	f.Var((*list)(&o.vendor.settings), "setting", "with a plugin: a line of its config block, as 'provider = \"tcp\"'; may be repeated")
	f.Var((*list)(&o.vendor.lines), "block", "with a plugin: a line of its transport block, as 'confine = false', 'auto_mtls = false' or 'env = { FI_PROVIDER = \"tcp\" }'; may be repeated")
	f.StringVar(&o.vendor.library, "library", "", "also measure by a command, such as one with the library of a plugin alone (pingpong, stream): it gets BENCHMARK SECONDS SIZE... and prints a line {\"size\": 8, \"iterations\": 1000, \"seconds\": 0.1} for each size; iterations are round trips, or 16 messages of a stream")
	f.StringVar(&o.plane, "plane", "", "data plane that links must have: fd, peer-shm, rdma, ring, stream or grpc")
	f.StringVar(&o.path, "path", "direct", "direct: links between procs; channel: through the agents of two sites")
	f.BoolVar(&o.calls, "calls", false, "the procs of ours measure their calls of MPI, as with calls = true in a metrics block")
	f.StringVar(&o.looks, "progress", "", "the procs of ours look after their messages so often while they compute, as with progress = \"1ms\" in a wait block")
	f.BoolVar(&o.timeline, "timeline", false, "the procs of ours write their calls of MPI to a file, as with calls in a trace block")
	f.BoolVar(&o.each, "timeline-each", false, "with -timeline: short calls one by one, as with short = \"each\"")
	f.StringVar(&o.resume, "resume", "", "true or false: whether links that break are resumed (default: the node's choice)")
	ranks := f.String("procs", "2", "ranks, as 2,4; pairs of them in pingpong, stream and rate")
	f.BoolVar(&o.floor, "floor", false, "also measure a bare polling socket pair (pingpong, stream)")
	f.BoolVar(&o.native, "native", false, "measure what this site gets of the MPI that it has, in C programs on this machine: that MPI alone, impi by it, and impi by default; without names of benchmarks half a round trip, streams, allreduce, bcast and alltoall, with 2 and 4 procs, 7 repetitions. With -peer: each of mpich and openmpi also as the MPI of a site of ours, whose route prefers it, beside what is measured anyway")
	f.StringVar(&o.cc, "cc", "mpicc", "with -native: the compiler of the site's MPI, as /opt/openmpi/bin/mpicc")
	peers := f.String("peer", "", "other implementations to measure: mpich,openmpi, and c: our library in C programs")
	beside := f.String("beside", "", "also measure ours with one thing changed: "+variantNames())
	f.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	f.BoolVar(&o.quiet, "quiet", false, "print no progress")
	f.StringVar(&o.node, "node", "", "the impi-node to use (default: beside impi-bench, or in PATH)")
	hosts := f.String("hostfile", "", "with start: the machines, by the launchers of each implementation (ssh, or what a scheduler's job has)")
	counts := f.String("machines", "", "with -hostfile and -on: how many machines, as 2,4 (default: 2,4,8)")
	on := f.String("on", "", "with start: make machines (needs root): ssh (network namespaces with sshd), slurm (a Slurm of this machine), or both")
	c.Help = withFlags(usage, f, examples)
	c.Check = func(args []string) (err error) {
		if err := o.readMachines(*on, *hosts, *counts); err != nil {
			return err
		}
		if o.sizes, err = parseSizes(*sizes); err != nil {
			return err
		}
		if o.ranks, err = parseProcs(*ranks); err != nil {
			return err
		}
		o.procs = o.ranks[0]
		if *peers != "" {
			o.peers = strings.Split(*peers, ",")
		}
		if *beside != "" {
			o.beside = strings.Split(*beside, ",")
		}
		o.benches = spelled(args)
		if o.ofSite() {
			if err := o.siteDefaults(f); err != nil {
				return err
			}
		}
		return o.check()
	}
	c.Run = measured(func(ctx context.Context, out io.Writer) error { return compare(ctx, *o, out) })
	c.Commands = append(c.Commands, startupCommand())
	return c, o
}

// helpWidth is the number of columns that a help text has.
const helpWidth = 96

func withFlags(before string, f *flag.FlagSet, after string) string {
	var b strings.Builder
	b.WriteString(before)
	f.SetOutput(&b)
	f.PrintDefaults()
	f.SetOutput(io.Discard)
	return cmdline.Wrap(b.String(), helpWidth) + after
}

func (o *options) readMachines(on, hosts, counts string) (err error) {
	switch {
	case hosts == "" && counts != "" && on == "":
		return errors.New("-machines needs -hostfile, which names them, or -on, which makes them")
	case on != "":
		o.on = strings.Split(on, ",")
		if o.counts, err = readCounts(counts, maxMade); err != nil {
			return err
		}
	}
	if hosts != "" {
		o.machines, err = readMachines(hosts, counts)
	}
	return err
}

func (o *options) check() error {
	if len(o.benches) == 0 {
		return fmt.Errorf("say what to measure: %s, or of each group all: %s; -help shows examples", strings.Join(benchNames, ", "), strings.Join(groupNames(), ", "))
	}
	for _, b := range o.benches {
		if !slices.Contains(benchNames, b) {
			return fmt.Errorf("no benchmark %q; there are %s, and the groups %s", b, strings.Join(benchNames, ", "), strings.Join(groupNames(), ", "))
		}
	}
	for _, word := range o.peers {
		p, folder, given := strings.Cut(word, "=")
		if given && (p == cName || folder == "") {
			return fmt.Errorf("-peer %s: write the folder that has bin/mpicc and bin/mpiexec after mpich= or openmpi=", word)
		}
		if p != "mpich" && p != "openmpi" && p != cName {
			return fmt.Errorf("no peer %q; there are mpich, openmpi, and %s for our own library in C programs", p, cName)
		}
	}
	if err := o.checkVendor(); err != nil {
		return err
	}
	switch {
	case o.native && len(o.peers) > 0 && !slices.ContainsFunc(o.peers, func(p string) bool { return p != cName }):
		return errors.New("-native with -peer needs the MPI that the site has, as -peer openmpi,mpich; without -peer it takes that of mpicc")
	case o.native && (o.path != "direct" || o.twoSites()):
		return errors.New("-native is for one site: leave out -path, and transports that need two")
	case o.path != "direct" && o.path != "channel":
		return fmt.Errorf("-path %q: want direct or channel", o.path)
	case o.resume != "" && o.resume != "true" && o.resume != "false":
		return fmt.Errorf("-resume %q: want true or false", o.resume)
	case o.repeat < 1 || o.rounds < 1 || o.seconds <= 0:
		return errors.New("-repeat, -rounds and -seconds must be positive")
	case slices.ContainsFunc(o.ranks, func(n int) bool { return n%2 != 0 }) && slices.ContainsFunc(o.benches, func(b string) bool { return benchmarks[b].pairs }):
		return errors.New("-procs must be even: pingpong, stream, rate and one-sided operations have pairs of ranks")
	case len(o.beside) > 0 && slices.ContainsFunc(o.benches, func(b string) bool { return benchmarks[b].whole }):
		return errors.New("-beside: overlap takes turns by itself, and cannot take turns with other benchmarks")
	}
	return errors.Join(o.checkMachines(), o.checkBeside())
}

func groupNames() []string { return slices.Sorted(maps.Keys(groups)) }

// spelled replaces the names of groups of benchmarks by those of their members.
func spelled(words []string) (names []string) {
	for _, word := range words {
		group, ok := groups[word]
		if !ok {
			group = []string{word}
		}
		for _, name := range group {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// parseProcs reads "2,4".
func parseProcs(s string) (list []int, err error) {
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 {
			return nil, fmt.Errorf("-procs: %q: write numbers of at least 2, as 2,4", word)
		}
		list = append(list, n)
	}
	return list, nil
}

// parseSizes reads "8,64K,1M".
func parseSizes(s string) (sizes []int, err error) {
	if s == "" {
		return nil, nil
	}
	for _, word := range strings.Split(s, ",") {
		unit := 1
		switch {
		case strings.HasSuffix(word, "K"):
			unit = 1 << 10
		case strings.HasSuffix(word, "M"):
			unit = 1 << 20
		}
		n, err := strconv.Atoi(strings.TrimRight(word, "KM"))
		if err != nil || n < 0 || n > 1<<30/unit {
			return nil, fmt.Errorf("-sizes: %q is no size; write bytes as 8, 64K or 1M", word)
		}
		sizes = append(sizes, n*unit)
	}
	return sizes, nil
}
