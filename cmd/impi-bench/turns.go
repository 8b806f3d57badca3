package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/mpi"
)

// Variants of ours that run one after the other differ by more than the change that is measured,
// since the machine's state changes within a second. So their jobs run at the same time and take
// turns of some milliseconds, and each turn is compared with the adjacent turn of the other
// variant.

// session is a running job of impi that measures on request.
type session struct {
	name  string
	cmd   *exec.Cmd
	errs  *bytes.Buffer
	ended chan error
	conn  *net.UnixConn // connection with rank 0
	lines *bufio.Scanner
}

// begin starts a job, in a directory of its own, and waits for rank 0.
func (w *own) begin(ctx context.Context, name, bench string, sizes []int) (*session, error) {
	dir, err := os.MkdirTemp(w.dir, name+"-")
	if err != nil {
		return nil, err
	}
	v := *w
	v.dir = dir
	at := filepath.Join(dir, "turns")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer func() { _ = ln.Close() }()
	file := filepath.Join(dir, "job.hcl")
	text := v.jobOf(loopsOf(bench, v.o.seconds/float64(v.o.rounds), sizes, v.self, turnsWord, at), bench, v.o.procsOf(bench, sizes))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &session{name: name, cmd: exec.CommandContext(ctx, v.node, "-config", file), errs: new(bytes.Buffer), ended: make(chan error, 1)}
	s.cmd.Stderr = s.errs
	grouped(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.ended <- s.cmd.Wait()
		_ = ln.Close()
	}()
	s.conn, err = ln.AcceptUnix()
	if err != nil {
		return nil, s.failure(<-s.ended)
	}
	s.lines = bufio.NewScanner(s.conn)
	return s, nil
}

func (s *session) failure(err error) error {
	return fmt.Errorf("%s: %s: %w\n%s", s.name, strings.Join(s.cmd.Args, " "), err, s.errs.String())
}

func (s *session) turn(size int) (f figure, err error) {
	if _, err := fmt.Fprintln(s.conn, size); err != nil {
		return f, s.failure(err)
	}
	if !s.lines.Scan() {
		return f, s.failure(errors.Join(errors.New("its rank 0 has ended"), s.lines.Err()))
	}
	if err := json.Unmarshal(s.lines.Bytes(), &f); err != nil || f.Size != size || f.Iterations <= 0 || f.Seconds <= 0 {
		return f, s.failure(fmt.Errorf("%q is no figure for %d bytes: %w", s.lines.Text(), size, err))
	}
	return f, nil
}

func (s *session) end() error {
	_ = s.conn.Close()
	if err := <-s.ended; err != nil {
		return s.failure(err)
	}
	return nil
}

// takeTurns is one repetition of contenders that can take turns: all their jobs run at the same
// time, and each measures for a little while when it is its turn.
func (o *options) takeTurns(ctx context.Context, bench string, sizes []int, all []contender, t *tally) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.limit)
	defer cancel()
	defer func() {
		if ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("%w within %v (flag -limit); is the machine busy, or are there fewer cores than ranks?", errStuck, o.limit)
		}
	}()
	var open []*session
	for _, c := range all {
		s, err := c.begin(ctx, bench, sizes)
		if err != nil {
			return err
		}
		defer func() { _ = s.conn.Close() }()
		open = append(open, s)
	}
	for _, size := range sizes {
		pairs := map[string][]float64{}
		for round := range o.rounds {
			if err := o.round(open, size, round, bench, t, pairs); err != nil {
				return err
			}
		}
		t.repeated(size, pairs)
	}
	for _, s := range open {
		err = errors.Join(err, s.end())
	}
	return err
}

// round is a turn of each. Who comes first changes, so that it makes no difference.
func (o *options) round(open []*session, size, round int, bench string, t *tally, pairs map[string][]float64) error {
	b, values := benchmarks[bench], make([]float64, len(open))
	for i := range open {
		if round%2 == 1 {
			i = len(open) - 1 - i
		}
		f, err := open[i].turn(size)
		if err != nil {
			return err
		}
		values[i] = b.value(f)
		t.add(open[i].name, size, values[i])
	}
	for i, s := range open[1:] {
		pairs[s.name] = append(pairs[s.name], b.ratio(values[0], values[i+1]))
	}
	return nil
}

// runTurns is the program of a job that takes turns: SOCKET BENCHMARK SECONDS SIZE...
func runTurns(args []string) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	w := newWorker(mpi.World())
	if err := w.settle(); err != nil {
		return err
	}
	bench, target, sizes, err := parseLoops(args[1:])
	if err != nil {
		return err
	}
	for _, size := range sizes {
		if err := w.prepare(size); err != nil {
			return err
		}
	}
	if w.rank == 0 {
		err = w.giveOrders(bench, args[0], target)
	} else {
		err = w.takeOrders(bench)
	}
	if err != nil {
		return err
	}
	if err := errors.Join(w.freeWindow(), w.freeMemory()); err != nil {
		return err
	}
	return mpi.Finalize()
}

// giveOrders is rank 0's part: it reads lines with a size, and answers each with a figure.
func (w *worker) giveOrders(bench, socket string, target float64) error {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	iterations := map[int]int64{}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		size, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		f, err := w.turn(bench, size, target, iterations)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(conn).Encode(f); err != nil {
			return err
		}
	}
	_, err = w.agree(-1)
	return err
}

// turn measures a size, after some iterations to warm up. The last turn tells how many
// iterations are needed.
func (w *worker) turn(bench string, size int, target float64, iterations map[int]int64) (f figure, err error) {
	if _, err = w.agree(int64(size)); err != nil {
		return f, err
	}
	if err := w.prepare(size); err != nil {
		return f, err
	}
	n := iterations[size]
	if n == 0 {
		if n, err = calibrate(w, bench, target); err != nil {
			return f, err
		}
	}
	t, err := timed(w, bench, n) // slow at the beginning: others had the cores
	if err != nil {
		return f, err
	}
	n = fill(n, t, target)
	f = figure{Size: size, Iterations: n}
	if f.Seconds, err = timed(w, bench, n); err != nil {
		return f, err
	}
	iterations[size] = fill(n, f.Seconds, target*warming)
	_, err = w.agree(0)
	return f, err
}

// warming is how long a turn runs before it is measured, as a fraction of the measured
// time.
const warming = 0.3

func (w *worker) takeOrders(bench string) error {
	for {
		size, err := w.agree(0)
		if err != nil || size < 0 {
			return err
		}
		if err := w.prepare(int(size)); err != nil {
			return err
		}
		if err := follow(w, bench); err != nil {
			return err
		}
	}
}

// settle pins all threads of this process to one core, a different one for each rank if
// there are enough: otherwise the scheduler may place the ranks of two jobs differently.
func (w *worker) settle() error {
	var all, own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < w.world.Size() {
		return err
	}
	for cpu, nth := 0, 0; nth <= w.rank; cpu++ {
		if all.IsSet(cpu) {
			own.Zero()
			own.Set(cpu)
			nth++
		}
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &own); err != nil && err != unix.ESRCH {
			return fmt.Errorf("thread %d: %w", id, err)
		}
	}
	return nil
}
