package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/machine"
	"github.com/openimpi/impi/internal/poll"
	"github.com/openimpi/impi/internal/skips"
	"github.com/openimpi/impi/internal/soak"
	"github.com/openimpi/impi/internal/wireup"
)

// boardOff has all tests of this package go without boards: IMPI_TEST_BOARD=off.
var boardOff = os.Getenv("IMPI_TEST_BOARD") == "off"

// maxTestBoard is the largest job whose procs get boards for the tests.
const maxTestBoard = 8

// testBoard is a board of procs that are all in this process.
type testBoard struct {
	memory []uint64
	bells  []machine.Bell
}

// blank are boards that were used before, by the number of procs: boards are large.
var blank struct {
	sync.Mutex
	boards map[int][]*testBoard
}

// newBoard returns a board for the time of a test.
func newBoard(t *testing.T, procs int) (*board.Board, []machine.Bell) {
	t.Helper()
	blank.Lock()
	defer blank.Unlock()
	x := &testBoard{}
	if free := blank.boards[procs]; len(free) > 0 {
		x = free[len(free)-1]
		blank.boards[procs] = free[:len(free)-1]
	} else {
		x.memory = make([]uint64, board.Size(procs)/8)
		for range procs {
			w, err := poll.NewWaker()
			if err != nil {
				t.Fatal(err)
			}
			x.bells = append(x.bells, w)
		}
	}
	t.Cleanup(func() {
		if t.Failed() { // somebody may still be at it
			return
		}
		blank.Lock()
		defer blank.Unlock()
		if blank.boards == nil {
			blank.boards = map[int][]*testBoard{}
		}
		blank.boards[procs] = append(blank.boards[procs], x)
	})
	return x.open(t, procs), x.bells
}

func (x *testBoard) open(t *testing.T, procs int) *board.Board {
	t.Helper()
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&x.memory[0])), board.Size(procs))
	clear(mem[:board.ControlSize(procs)])
	header, err := board.Header(procs)
	if err != nil {
		t.Fatal(err)
	}
	copy(mem, header)
	b, err := board.Open(mem, procs)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// putOnBoards gives the procs of each host a board.
func putOnBoards(t *testing.T, procs []*proc.Process) {
	t.Helper()
	for _, p := range procs {
		mates := p.Boards.ProcsOfHost()
		if n := len(mates); n < 2 || n > maxTestBoard || mates[0] != p.Job.Rank {
			continue
		}
		b, bells := newBoard(t, len(mates))
		lends, err := wireup.NewLending()
		if err != nil {
			t.Fatal(err)
		}
		lends.Cores = board.Cores{Count: uint32(len(mates) - len(procs)%2)} // both limits are tested
		for _, r := range mates {
			procs[r].Boards.Lending = lends
			if err := procs[r].Boards.OnBoard(b, bells, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// onlyBoards skips a test about boards where there are none.
func onlyBoards(t *testing.T) {
	t.Helper()
	if boardOff {
		skips.NotRun(t, "IMPI_TEST_BOARD=off takes boards away", "unset IMPI_TEST_BOARD")
	}
}

// boardOps are the operations that go by way of the board, with blocks of n elements.
var boardOps = map[string]func(c *Comm, root, n int) error{
	"barrier": func(c *Comm, _, _ int) error { return Barrier(c) },
	"bcast": func(c *Comm, root, n int) error {
		b := make([]int32, n)
		if c.Rank() == root {
			b = boardNumbers(n, root)
		}
		return agrees(Bcast(c, b, root), b, boardNumbers(n, root))
	},
	"gather": func(c *Comm, root, n int) error {
		all := make([]int32, n*c.Size())
		err := Gather(c, boardNumbers(n, c.Rank()), all, root)
		if c.Rank() != root {
			return err
		}
		return agrees(err, all, boardBlocks(c, n))
	},
	"gather in place": func(c *Comm, root, n int) error {
		if c.Rank() != root {
			return Gather(c, boardNumbers(n, c.Rank()), nil, root)
		}
		all := make([]int32, n*c.Size())
		copy(all[n*root:], boardNumbers(n, root))
		return agrees(Gather(c, nil, all, root), all, boardBlocks(c, n))
	},
	"scatter": func(c *Comm, root, n int) error {
		var all []int32
		if c.Rank() == root {
			all = boardBlocks(c, n)
		}
		b := make([]int32, n)
		return agrees(Scatter(c, all, b, root), b, boardNumbers(n, c.Rank()))
	},
	"allgather": func(c *Comm, _, n int) error {
		all := make([]int32, n*c.Size())
		return agrees(Allgather(c, boardNumbers(n, c.Rank()), all), all, boardBlocks(c, n))
	},
	"allgather in place": func(c *Comm, _, n int) error {
		all := make([]int32, n*c.Size())
		copy(all[n*c.Rank():], boardNumbers(n, c.Rank()))
		return agrees(Allgather(c, nil, all), all, boardBlocks(c, n))
	},
	"alltoall": func(c *Comm, _, n int) error {
		send, recv, want := boardCrossing(c, n)
		return agrees(Alltoall(c, send, recv), recv, want)
	},
	"alltoall in place": func(c *Comm, _, n int) error {
		send, _, want := boardCrossing(c, n)
		return agrees(Alltoall(c, nil, send), send, want)
	},
	"reduce": func(c *Comm, root, n int) error {
		sum := make([]int32, n)
		err := Reduce(c, boardNumbers(n, c.Rank()), sum, Sum, root)
		if c.Rank() != root {
			return err
		}
		return agrees(err, sum, boardSums(c, n))
	},
	"reduce in place, in order": func(c *Comm, root, n int) error {
		b := boardLines(n, c.Rank(), c.Rank()+1)
		if c.Rank() != root {
			return Reduce(c, b, nil, joined, root)
		}
		return agrees(Reduce(c, nil, b, joined, root), b, boardLines(n, 0, c.Size()))
	},
	"allreduce": func(c *Comm, _, n int) error {
		sum := make([]int32, n)
		return agrees(Allreduce(c, boardNumbers(n, c.Rank()), sum, Sum), sum, boardSums(c, n))
	},
	"allreduce in place": func(c *Comm, _, n int) error {
		sum := boardNumbers(n, c.Rank())
		return agrees(Allreduce(c, nil, sum, Sum), sum, boardSums(c, n))
	},
	"allreduce in place, in order": func(c *Comm, _, n int) error {
		b := boardLines(n, c.Rank(), c.Rank()+1)
		return agrees(Allreduce(c, nil, b, joined), b, boardLines(n, 0, c.Size()))
	},
	"a type with gaps": func(c *Comm, root, n int) error {
		gaps, err := TypeResized(datatype.Basic(datatype.Int32), 0, 8)
		if err == nil {
			err = gaps.Commit()
		}
		if err != nil {
			return err
		}
		b := make([]int32, 2*n)
		if c.Rank() == root {
			b = boardNumbers(2*n, 5)
		}
		err = c.Bcast(Typed(b, n, gaps), root)
		want := boardNumbers(2*n, 5)
		for i := range n {
			if err == nil && b[2*i] != want[2*i] {
				return fmt.Errorf("item %d is %d", i, b[2*i])
			}
		}
		return err
	},
}

// joined joins intervals of ranks, low<<8 | high, that follow each other.
var joined = NewOp(func(in, inout []int32) {
	for i := range inout {
		if in[i]&255 != inout[i]>>8 {
			inout[i] = -1
			continue
		}
		inout[i] = in[i]&^255 | inout[i]&255
	}
}, false)

func boardLines(n, low, high int) []int32 {
	return slices.Repeat([]int32{int32(low<<8 | high)}, n)
}

// sequences are numbers that tests send or expect, by the first one and their distance. They are
// made once: with the race detector that took longer than what is tested.
var sequences struct {
	sync.Mutex
	made map[[2]int][]int32
}

// sequence is the caller's own copy of n numbers.
func sequence(n, first, step int) []int32 {
	sequences.Lock()
	defer sequences.Unlock()
	key := [2]int{first, step}
	all := sequences.made[key]
	if len(all) < n {
		all = make([]int32, n)
		for i := range all {
			all[i] = int32(first + step*i)
		}
		if sequences.made == nil {
			sequences.made = map[[2]int][]int32{}
		}
		sequences.made[key] = all
	}
	return slices.Clone(all[:n])
}

func boardNumbers(n, seed int) []int32 { return sequence(n, seed*100003, 1) }

func boardBlocks(c *Comm, n int) (all []int32) {
	for r := range c.Size() {
		all = append(all, boardNumbers(n, r)...)
	}
	return all
}

// boardSums are the sums of what boardNumbers gives to all members.
func boardSums(c *Comm, n int) []int32 {
	size := c.Size()
	return sequence(n, 100003*size*(size-1)/2, size)
}

func boardCrossing(c *Comm, n int) (send, recv, want []int32) {
	for r := range c.Size() {
		send = append(send, boardNumbers(n, c.Rank()<<8+r)...)
		want = append(want, boardNumbers(n, r<<8+c.Rank())...)
	}
	return send, make([]int32, len(send)), want
}

func agrees(err error, got, want []int32) error {
	if err == nil && !bytes.Equal(bytesOf(slices.Clone(got)), bytesOf(want)) { // the race detector sees the copy, as a whole
		at := 0
		for got[at] == want[at] {
			at++
		}
		return fmt.Errorf("element %d of %d is %d, want %d", at, len(want), got[at], want[at])
	}
	return err
}

func bytesOf(a []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(a))), 4*len(a))
}

// All operations give what they should in any order, at all lengths and however the
// procs wait, and between them come some that go by messages.
func TestBoardOperations(t *testing.T) {
	onlyBoards(t)
	sizes := []int{1, 2, 12, 13, 300, 1024, 1025, 2048, 2049, 5000, 8192, 8193, 17000, 32768, 32769, 70001}
	for _, x := range []struct {
		procs int
		spin  string
	}{{2, "auto"}, {3, "0"}, {5, "auto"}, {8, "0"}} {
		layout{procs: x.procs, spin: x.spin}.run(t, func(_ *testing.T, c *Comm) error {
			random := rand.New(rand.NewPCG(1, uint64(x.procs)))
			for range 80 {
				what := slices.Sorted(maps.Keys(boardOps))[random.IntN(len(boardOps))]
				root, n := random.IntN(c.Size()), sizes[random.IntN(len(sizes))]
				if random.IntN(5) == 0 {
					if q, err := Ibarrier(c); err != nil || second(q.Wait()) != nil {
						return fmt.Errorf("ibarrier: %w", err)
					}
				}
				if err := boardOps[what](c, root, n); err != nil {
					return fmt.Errorf("%s of %d from %d: %w", what, n, root, err)
				}
			}
			if s := collective.BoardMember(c.in()); s == nil || s.Member.Ops < 50 || s.Member.Lend == board.NeverLend {
				return errors.New("the board was not used, or nothing lent")
			}
			return nil
		})
	}
}

// Whoever waits on the board hears of a member that dies, asleep or not.
func TestBoardPeerDies(t *testing.T) {
	onlyBoards(t)
	for _, name := range []string{"barrier", "allgather", "alltoall", "allreduce", "bcast", "scatter"} {
		procs := layout{procs: 3}.start(t)
		done := make(chan error)
		for _, p := range procs[:2] {
			go func() { done <- boardOps[name]((*Comm)(p.Comms.World), 2, 10) }()
			sleeping(p, 1)
		}
		p := procs[2]
		p.Lock()
		p.Endpoints.Close()
		p.Unlock()
		for range 2 {
			if err := <-done; !errors.Is(err, message.ErrPeerDown) {
				t.Errorf("%s without the third: %v", name, err)
			}
		}
		if err := Barrier((*Comm)(procs[0].Comms.World)); !errors.Is(err, message.ErrPeerDown) {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

func TestBoardJobEnds(t *testing.T) {
	onlyBoards(t)
	procs := layout{procs: 2}.start(t)
	done := make(chan error)
	go func() { done <- Barrier((*Comm)(procs[0].Comms.World)) }()
	sleeping(procs[0], 1)
	procs[0].Lock()
	procs[0].SetFailed(errors.New("for the test"))
	procs[0].Unlock()
	if err := <-done; !errors.Is(err, ErrJobOver) {
		t.Errorf("asleep: %v", err)
	}
	if err := Bcast((*Comm)(procs[0].Comms.World), []byte{1}, 0); !errors.Is(err, ErrJobOver) {
		t.Errorf("afterwards: %v", err)
	}
}

// A sleeper is woken by what others write on the board.
func TestBoardWakes(t *testing.T) {
	onlyBoards(t)
	for name, op := range boardOps {
		procs := layout{procs: 3, spin: "0"}.start(t)
		done := make(chan error)
		for _, p := range procs[:2] {
			go func() { done <- op((*Comm)(p.Comms.World), 2, 10) }()
		}
		if name != "gather" && name != "gather in place" && name != "reduce" && name != "reduce in place, in order" { // there they do not wait
			sleeping(procs[0], 1)
			sleeping(procs[1], 1)
		}
		if err := op((*Comm)(procs[2].Comms.World), 2, 10); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Communicators beyond those that there is room for do without, and who is freed
// makes room.
func TestBoardSlots(t *testing.T) {
	onlyBoards(t)
	layout{procs: 3}.run(t, func(_ *testing.T, c *Comm) error {
		for range 3 {
			var dups []*Comm
			seated := 0
			for range board.Slots + 3 {
				d, err := c.Dup()
				if err != nil {
					return err
				}
				if err := boardOps["allreduce"](d, 0, 5); err != nil {
					return err
				}
				if collective.BoardMember(d.in()) != nil {
					seated++
				}
				dups = append(dups, d)
			}
			if err := expect("on the board", seated, board.Slots-1); err != nil {
				return err
			}
			for _, d := range dups {
				if err := first(boardOps["bcast"](d, 1, 5), d.Free()); err != nil {
					return err
				}
			}
			if err := Barrier(c); err != nil { // or some have not left yet
				return err
			}
		}
		return nil
	})
}

// Goroutines use communicators of their own at the same time, and messages.
func TestBoardThreads(t *testing.T) {
	onlyBoards(t)
	for _, spin := range []string{"auto", "0"} {
		layout{procs: 3, spin: spin}.run(t, func(_ *testing.T, c *Comm) error {
			const threads = 4
			errs := make(chan error, threads)
			for i := range threads {
				d, err := c.Dup()
				if err != nil {
					return err
				}
				go func() { errs <- threadOnBoard(d, i) }()
			}
			var all error
			for range threads {
				all = first(all, <-errs)
			}
			return all
		})
	}
}

func threadOnBoard(c *Comm, seed int) error {
	random := rand.New(rand.NewPCG(2, uint64(seed)))
	next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	for i := range 30 {
		names := slices.Sorted(maps.Keys(boardOps))
		name, root, n := names[random.IntN(len(names))], random.IntN(c.Size()), 1+random.IntN(3000)
		if err := boardOps[name](c, root, n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		got := []int32{0}
		if _, err := Sendrecv(c, []int32{int32(i)}, next, 1, got, before, 1); err != nil || got[0] != int32(i) {
			return fmt.Errorf("message %d: got %d, %w", i, got[0], err)
		}
	}
	return nil
}

// Who lends memory may change it when the operation is over, however slowly the others read.
func TestBoardLends(t *testing.T) {
	onlyBoards(t)
	for _, procs := range []int{2, 3, 4} {
		all := layout{procs: procs}.start(t)
		slow := *all[0].Boards.Lending
		slow.Fetch = func(from *board.MemoryKey, addr uint64, to []byte) error {
			for range 2000 { // lets the others go on
				runtime.Gosched()
			}
			return all[0].Boards.Lending.Fetch(from, addr, to)
		}
		done := make(chan error)
		for _, p := range all[1:] {
			p.Boards.Lending = &slow
		}
		for _, p := range all {
			go func() { done <- lendAndChange((*Comm)(p.Comms.World)) }()
		}
		for range procs {
			if err := <-done; err != nil {
				t.Errorf("%d procs: %v", procs, err)
			}
		}
	}
}

// lendAndChange does operations of which members change what they have sent as soon as they can.
func lendAndChange(c *Comm) error {
	const n = 40000
	me, size := c.Rank(), c.Size()
	for i := range soak.Size(2, 5) * size {
		root := i % size
		own, all, sum := boardNumbers(n, me), make([]int32, n*size), make([]int32, n)
		err := Gather(c, own, all, root)
		clear(own)
		if me == root {
			err = first(err, agrees(err, all, boardBlocks(c, n)))
		}
		own = boardNumbers(n, me)
		err = first(err, Allgather(c, own, all))
		clear(own)
		err = first(err, agrees(err, all, boardBlocks(c, n)))
		err = first(err, Scatter(c, all, own, root))
		clear(all)
		err = first(err, agrees(err, own, boardNumbers(n, me)))
		err = first(err, Reduce(c, own, sum, Sum, root))
		clear(own)
		if me == root {
			err = first(err, agrees(err, sum, boardSums(c, n)))
		}
		long, sums := boardNumbers(2*n, me), make([]int32, 2*n)
		err = first(err, Allreduce(c, long, sums, Sum))
		clear(long)
		err = first(err, agrees(err, sums, boardSums(c, 2*n)))
		sums = boardNumbers(2*n, me)
		err = first(err, Allreduce(c, nil, sums, Sum))
		err = first(err, agrees(err, sums, boardSums(c, 2*n)))
		clear(sums)
		send, recv, want := boardCrossing(c, n)
		err = first(err, Alltoall(c, send, recv))
		clear(send)
		err = first(err, agrees(err, recv, want))
		if me == root {
			own = boardNumbers(n, i)
		}
		err = first(err, Bcast(c, own, root))
		err = first(err, agrees(err, own, boardNumbers(n, i)))
		clear(own)
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	return nil
}

// If one proc cannot read the others' memory none lends, and all else is as ever.
func TestBoardUnreadable(t *testing.T) {
	onlyBoards(t)
	for _, lends := range []*board.Lending{nil, {Cores: board.Cores{Count: 9}, Fetch: func(*board.MemoryKey, uint64, []byte) error { return wireup.ErrUnreadable }}} {
		procs := layout{procs: 3}.start(t)
		procs[1].Boards.Lending = lends
		done := make(chan error)
		for _, p := range procs {
			go func() {
				c := (*Comm)(p.Comms.World)
				err := boardOps["allgather"](c, 0, 20000)
				if at := collective.BoardMember(c.in()).Member.Lend; err == nil && at != board.NeverLend {
					err = fmt.Errorf("blocks are lent from %d bytes on", at)
				}
				done <- err
			}()
		}
		for range procs {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
}

// What procs cannot read of what others lend they get in another way, wherever that happens.
func TestBoardCopiesUnreadable(t *testing.T) {
	onlyBoards(t)
	for _, x := range []struct {
		procs int
		nth   int64 // which reads fail
	}{{2, 1}, {2, 5}, {3, 2}, {4, 1}, {4, 5}} {
		all := layout{procs: x.procs}.start(t)
		var reads, failed atomic.Int64
		for _, p := range all[1:] { // and one that can read all
			lends := *p.Boards.Lending
			lends.Fetch = func(from *board.MemoryKey, addr uint64, to []byte) error {
				if len(to) > 16 && reads.Add(1)%x.nth == 0 {
					failed.Add(1)
					return wireup.ErrUnreadable
				}
				return all[0].Boards.Lending.Fetch(from, addr, to)
			}
			p.Boards.Lending = &lends
		}
		done := make(chan error)
		for _, p := range all {
			go func() { done <- lentOperations((*Comm)(p.Comms.World)) }()
		}
		for range all {
			if err := <-done; err != nil {
				t.Errorf("%d procs, every read of %d: %v", x.procs, x.nth, err)
			}
		}
		if failed.Load() == 0 {
			t.Errorf("%d procs: all could be read", x.procs)
		}
	}
}

// lentOperations does all operations with long blocks, from all roots, and then some where members
// change what they have sent.
func lentOperations(c *Comm) error {
	for root := range c.Size() {
		for _, n := range []int{9000, 70001} {
			for _, name := range slices.Sorted(maps.Keys(boardOps)) {
				if err := boardOps[name](c, root, n); err != nil {
					return fmt.Errorf("%s of %d from %d: %w", name, n, root, err)
				}
			}
			b := boardNumbers(n, c.Rank())
			if c.Rank() != root {
				if err := Reduce(c, b, nil, Sum, root); err != nil {
					return fmt.Errorf("reduce of %d to %d: %w", n, root, err)
				}
			} else if err := Reduce(c, nil, b, Sum, root); agrees(err, b, boardSums(c, n)) != nil {
				return fmt.Errorf("reduce in place of %d to %d: %w", n, root, agrees(err, b, boardSums(c, n)))
			}
		}
	}
	for _, n := range []int{70001, 300001} {
		sum, b := make([]int32, n), boardNumbers(n, c.Rank())
		err := agrees(Allreduce(c, b, sum, Sum), sum, boardSums(c, n))
		if err == nil {
			err = agrees(Allreduce(c, nil, b, Sum), b, boardSums(c, n))
		}
		if err != nil {
			return fmt.Errorf("allreduce of %d: %w", n, err)
		}
	}
	return lendAndChange(c)
}

// Who has no memory for what others lend waits until they have read what it lends itself.
func TestBoardOwnMemory(t *testing.T) {
	onlyBoards(t)
	for _, name := range []string{"allgather", "alltoall"} {
		procs := layout{procs: 3}.start(t)
		lends := procs[0].Boards.Lending
		var over atomic.Bool
		for i, p := range procs {
			x := *lends
			x.Fetch = func(from *board.MemoryKey, addr uint64, to []byte) error {
				for i > 0 && len(to) > 16 && !over.Load() && !asleep(procs[0]) {
					runtime.Gosched()
				}
				if i == 0 && len(to) > 16 {
					return wireup.ErrUnreadable
				}
				return lends.Fetch(from, addr, to)
			}
			p.Boards.Lending = &x
		}
		procs[0].Boards.CanWrite = func([]byte) bool { return false }
		done := make(chan error)
		for _, p := range procs[1:] {
			go func() { done <- boardOps[name]((*Comm)(p.Comms.World), 0, 20000) }()
		}
		c := (*Comm)(procs[0].Comms.World)
		send, recv, call := boardNumbers(20000, 0), make([]int32, 60000), Allgather[int32]
		if name == "alltoall" {
			send, recv, _ = boardCrossing(c, 20000)
			call = Alltoall[int32]
		}
		err := call(c, send, recv)
		clear(send)
		over.Store(true)
		if !errors.Is(err, ErrBuffer) {
			t.Errorf("%s: without memory: %v", name, err)
		}
		for range procs[1:] {
			if err := <-done; err != nil {
				t.Errorf("%s: the others: %v", name, err)
			}
		}
	}
}

// asleep reports whether a proc sleeps.
func asleep(p *proc.Process) bool {
	if !p.Mu.TryLock() {
		return false
	}
	defer p.Mu.Unlock()
	return p.Asleep
}

// Who lends memory does not wait for a member that wants another length.
func TestBoardLentToOther(t *testing.T) {
	onlyBoards(t)
	const n = 100000
	for name, call := range map[string]func(c *Comm, n int) error{
		"bcast":  func(c *Comm, n int) error { return Bcast(c, make([]int32, n), 0) },
		"gather": func(c *Comm, n int) error { return Gather(c, make([]int32, n), make([]int32, n*c.Size()), 1) },
		"reduce": func(c *Comm, n int) error { return Reduce(c, make([]int32, n), make([]int32, n), Sum, 1) },
		"scatter": func(c *Comm, n int) error {
			return Scatter(c, make([]int32, n*c.Size()), make([]int32, n), 0)
		},
		"allgather": func(c *Comm, n int) error { return Allgather(c, make([]int32, n), make([]int32, n*c.Size())) },
	} {
		procs := layout{procs: 2}.start(t)
		done := make(chan error)
		go func() { done <- call((*Comm)(procs[1].Comms.World), n-500) }()
		err := call((*Comm)(procs[0].Comms.World), n)
		if name == "allgather" && !errors.Is(err, coll.ErrCount) || name != "allgather" && err != nil {
			t.Errorf("%s: who lends: %v", name, err)
		}
		if err := <-done; !errors.Is(err, coll.ErrCount) {
			t.Errorf("%s: who wants less: %v", name, err)
		}
	}
}

// An operation that C has done, and whose end Go has waited for in vain, is not done again.
func TestBoardEndedInVain(t *testing.T) {
	onlyBoards(t)
	procs := layout{procs: 2}.start(t)
	done := make(chan error)
	for _, p := range procs {
		go func() { done <- Barrier((*Comm)(p.Comms.World)) }()
	}
	if err := first(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	s, bad := collective.BoardMember(procs[0].Comms.World), errors.New("for the test")
	s.Ended = bad
	if err := Bcast((*Comm)(procs[0].Comms.World), []byte{1}, 0); !errors.Is(err, bad) { // nobody else calls it
		t.Errorf("what Go was told: %v", err)
	}
	for _, p := range procs {
		go func() { done <- boardOps["allgather"]((*Comm)(p.Comms.World), 0, 10) }()
	}
	if err := first(<-done, <-done); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Who waits on the board sees to messages, and so does who never has to wait.
func TestBoardProgress(t *testing.T) {
	onlyBoards(t)
	layout{procs: 3}.run(t, func(_ *testing.T, c *Comm) error {
		long := pattern(1<<20, 3)
		if c.Rank() == 2 {
			if err := Send(c, long, 0, 1); err != nil { // takes rank 0's library, which waits in Barrier
				return err
			}
			return Barrier(c)
		}
		got := make([]byte, len(long))
		q, err := Irecv(c, got, 2, 1)
		if c.Rank() == 1 {
			return first(err, q.Cancel(), second(q.Wait()), Barrier(c))
		}
		return first(err, Barrier(c), second(q.Wait()))
	})
}

// Memory that cannot be had is an error of who wanted it.
func TestBoardMemory(t *testing.T) {
	onlyBoards(t)
	procs := layout{procs: 2}.start(t)
	bad := errors.New("no memory")
	done := make(chan error)
	for _, p := range procs {
		go func() { done <- Barrier((*Comm)(p.Comms.World)) }()
	}
	if err := first(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	procs[0].Boards.Commit = func(int, int) error { return bad }
	if err := Bcast((*Comm)(procs[0].Comms.World), make([]byte, 1000), 0); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
	if err := Bcast((*Comm)(procs[0].Comms.World), make([]byte, 8), 0); err != nil {
		t.Errorf("what needs none: %v", err)
	}
}
