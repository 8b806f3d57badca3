package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

const (
	window  = 64 // messages on their way in `rate`
	depth   = 16 // messages on their way in `stream`
	tagData = 1
	tagNext = 2
)

type figure struct {
	Size       int     `json:"size"` // bytes
	Iterations int64   `json:"iterations"`
	Seconds    float64 `json:"seconds"`
	Resident   int64   `json:"resident,omitempty"` // bytes of memory, of `memory` alone
	Overlap    float64 `json:"overlap,omitempty"`  // part of the operation's time that computation hid, of `overlap` alone
}

// worker is one rank of a measured job. The loops are those of peers/bench.c.
type worker struct {
	world *mpi.Comm
	rank  int
	peer  int // even ranks send to the odd ones above them
	buffer
	buffers      map[int]buffer // by size
	words        [3]int64       // of one-sided operations: the operand, the old value, the compared value
	reqs         [window]mpi.Request
	partner      *partner // used by rank 0, in `connect`
	synchronized bool     // the barrier before nonblocking operations was done
	compute      int64    // steps of computation after each start, in `overlap`
	lent         bool     // messages are in memory of windows
	memory       []*mpi.Win
}

// lentVariable is in the environment of workers whose messages are in memory of windows.
const lentVariable = "IMPI_BENCH_LENT"

type buffer struct {
	size    int    // of messages and blocks, in bytes
	out, in []byte // a block for each rank
	sums    [2][]float64
	win     *mpi.Win // window of one-sided operations
	locked  bool     // all ranks of win are
}

// runWorker is the program that impi-node starts: BENCHMARK SECONDS SIZE...
func runWorker(args []string) (err error) {
	if err := mpi.Init(); err != nil {
		return err
	}
	if err := runLoops(mpi.World(), args); err != nil {
		return err
	}
	return mpi.Finalize()
}

func runLoops(world *mpi.Comm, args []string) error {
	bench, target, sizes, err := parseLoops(args)
	if err != nil {
		return err
	}
	w := newWorker(world)
	if !benchmarks[bench].ranks {
		return w.exist(bench)
	}
	if w.world.Size() < 2 {
		return fmt.Errorf("%s needs at least 2 ranks", bench)
	}
	for _, size := range sizes {
		w.buffers = nil // buffers of other sizes are not needed any more
		if err := w.prepare(size); err != nil {
			return err
		}
		if err := w.needWindow(bench); err != nil {
			return err
		}
		if err := w.measure(bench, size, target); err != nil {
			return err
		}
		if err := errors.Join(w.freeWindow(), w.freeMemory()); err != nil {
			return err
		}
	}
	return nil
}

func newWorker(world *mpi.Comm) *worker {
	return &worker{world: world, rank: world.Rank(), peer: world.Rank() ^ 1, lent: os.Getenv(lentVariable) != ""}
}

// prepare sets w.buffer to the buffers of a size, which it allocates only once.
func (w *worker) prepare(size int) error {
	if b, ok := w.buffers[size]; ok {
		w.buffer = b
		return nil
	}
	if w.buffers == nil {
		w.buffers = map[int]buffer{}
	}
	n := size * w.world.Size()
	out, in, err := w.messages(n)
	if err != nil {
		return err
	}
	w.buffer = buffer{size, out, in, [2][]float64{filledNumbers(size / 8 * w.world.Size()), filledNumbers(size / 8 * w.world.Size())}, nil, false}
	w.buffers[size] = w.buffer
	return nil
}

// messages allocates memory for messages that are sent, and received.
func (w *worker) messages(n int) (out, in []byte, err error) {
	if !w.lent {
		return filled(n), filled(n), nil
	}
	win, err := w.world.WinAllocate(int64(2*n), 1, nil)
	if err != nil {
		return nil, nil, err
	}
	w.memory = append(w.memory, win)
	b := win.Memory()
	copy(b, filled(2*n))
	return b[:n:n], b[n:], nil
}

// freeMemory frees the windows of messages, in the same order everywhere.
func (w *worker) freeMemory() error {
	for _, win := range w.memory {
		if err := win.Free(); err != nil {
			return err
		}
	}
	w.memory = nil
	return nil
}

// filled returns memory that has been written to: untouched pages all map to one page of zeroes,
// which is copied faster than any message.
func filled(n int) []byte { return bytes.Repeat([]byte{1}, n) }

func filledNumbers(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i)
	}
	return v
}

// exist measures memory: rank 0 reports its own resident memory or, once all ranks have exchanged
// messages, that of the plugins.
func (w *worker) exist(bench string) error {
	if bench == "plugins" {
		if err := w.meet(); err != nil {
			return err
		}
	}
	if w.rank != 0 {
		return nil
	}
	measure := func() (int64, error) { return residentBytes("/proc/self/statm") }
	if bench == "plugins" {
		measure = pluginBytes
	}
	resident, err := measure()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(figure{Size: w.world.Size(), Iterations: 1, Seconds: 1, Resident: resident})
}

func (w *worker) meet() error {
	n := w.world.Size()
	return mpi.Alltoall(w.world, make([]byte, n), make([]byte, n))
}

func residentBytes(statm string) (int64, error) {
	b, err := os.ReadFile(statm)
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0, fmt.Errorf("%s: %w", statm, err)
	}
	return resident * int64(os.Getpagesize()), nil
}

func (w *worker) measure(bench string, size int, target float64) (err error) {
	if bench == "overlap" {
		return w.overlap(size, target)
	}
	if w.rank != 0 {
		return follow(w, bench)
	}
	if bench == "connect" {
		if w.partner, err = takePartner(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.partner.leave()) }()
	}
	return report(w, bench, size, target)
}

// loop is what is measured: an end of the floor, or a rank.
type loop interface {
	// agree sends the number of the next iterations from the first end to the others, and returns
	// it; 0: no more.
	agree(n int64) (int64, error)
	iterate(bench string, n int64) error
}

// report prints the figure of a size, of as many iterations as fill the target, in seconds.
func report(l loop, bench string, size int, target float64) error {
	n, err := calibrate(l, bench, target)
	if err != nil {
		return err
	}
	t, err := timed(l, bench, n)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(figure{Size: size, Iterations: n, Seconds: t}); err != nil {
		return err
	}
	_, err = l.agree(0)
	return err
}

// calibrate doubles the iterations until they take a tenth of the target, in
// seconds, and returns how many fill it. It is for rank 0, like timed.
func calibrate(l loop, bench string, target float64) (int64, error) {
	for n := int64(8); ; {
		t, err := timed(l, bench, n)
		if err != nil {
			return 0, err
		}
		var final bool
		if n, final = next(n, t, target); final {
			return n, nil
		}
	}
}

func timed(l loop, bench string, n int64) (float64, error) {
	if _, err := l.agree(n); err != nil {
		return 0, err
	}
	start := time.Now()
	err := l.iterate(bench, n)
	return time.Since(start).Seconds(), err
}

// follow is what the other ranks do, until rank 0 agrees on no iterations.
func follow(l loop, bench string) error {
	for {
		n, err := l.agree(0)
		if err != nil || n == 0 {
			return err
		}
		if err := l.iterate(bench, n); err != nil {
			return err
		}
	}
}

// next returns the number of iterations after n took t seconds, and whether they
// are to be measured.
func next(n int64, t, target float64) (int64, bool) {
	if t < target/10 {
		return 2 * n, false
	}
	return fill(n, t, target), true
}

func fill(n int64, t, target float64) int64 { return int64(float64(n)*target/t) + 1 }

func (w *worker) agree(n int64) (int64, error) {
	v := []int64{n}
	if w.rank != 0 {
		_, err := mpi.Recv(w.world, v, 0, tagNext)
		return v[0], err
	}
	for r := 1; r < w.world.Size(); r++ {
		if err := mpi.Send(w.world, v, r, tagNext); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (w *worker) iterate(bench string, n int64) error {
	switch bench {
	case "pingpong":
		return w.pingpong(n)
	case "stream":
		return w.windows(n, depth)
	case "rate":
		return w.windows(n, window)
	case "connect", "spawn":
		if w.rank != 0 {
			return nil
		}
		if bench == "spawn" {
			return w.spawn(n)
		}
		return w.partner.connect(n)
	}
	switch {
	case slices.Contains(nonblockingNames, bench):
		return w.nonblocking(bench, n)
	case slices.Contains(onesidedNames, bench):
		return w.onesided(bench, n)
	}
	return w.collectives(bench, n)
}

// pingpong: half a round trip per iteration counts. Pairs of ranks do it at the
// same time.
func (w *worker) pingpong(n int64) (err error) {
	if w.rank%2 == 0 {
		for i := int64(0); i < n && err == nil; i++ {
			if err = mpi.Send(w.world, w.out[:w.size], w.peer, tagData); err == nil {
				_, err = mpi.Recv(w.world, w.in[:w.size], w.peer, tagData)
			}
		}
		return err
	}
	for i := int64(0); i < n && err == nil; i++ {
		if _, err = mpi.Recv(w.world, w.in[:w.size], w.peer, tagData); err == nil {
			err = mpi.Send(w.world, w.out[:w.size], w.peer, tagData)
		}
	}
	return err
}

// windows measures one direction: depth messages at a time, and an answer after each of these
// windows.
func (w *worker) windows(n int64, depth int) error {
	token, reqs := make([]byte, 1), w.reqs[:depth]
	for range n {
		var err error
		if w.rank%2 == 0 {
			err = w.sendWindow(reqs, token)
		} else {
			err = w.recvWindow(reqs, token)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) sendWindow(reqs []mpi.Request, token []byte) (err error) {
	for k := range reqs {
		if reqs[k], err = mpi.Isend(w.world, w.out[:w.size], w.peer, tagData); err != nil {
			return err
		}
	}
	if err = mpi.Waitall(reqs, nil); err == nil {
		_, err = mpi.Recv(w.world, token, w.peer, tagData)
	}
	return err
}

func (w *worker) recvWindow(reqs []mpi.Request, token []byte) (err error) {
	for k := range reqs {
		if reqs[k], err = mpi.Irecv(w.world, w.in[:w.size], w.peer, tagData); err != nil {
			return err
		}
	}
	if err = mpi.Waitall(reqs, nil); err == nil {
		err = mpi.Send(w.world, token, w.peer, tagData)
	}
	return err
}
