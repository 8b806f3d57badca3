package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
)

// hintsOf makes an info object of keys and values.
func hintsOf(pairs ...string) *Info {
	i := NewInfo()
	for k := 0; k < len(pairs); k += 2 {
		if err := i.Set(pairs[k], pairs[k+1]); err != nil {
			panic(err)
		}
	}
	return i
}

// scattered is where in a file each of several members has data, in no pattern.
func scattered(r *rand.Rand, members, blocks int) (where [][][2]int64, size int64) {
	where = make([][][2]int64, members)
	at := int64(r.IntN(10))
	for range blocks {
		n := int64(1 + r.IntN(7))
		m := r.IntN(members + 1) // the last one is a hole
		if m < members {
			where[m] = append(where[m], [2]int64{at, n})
		}
		at += n
	}
	return where, at
}

// viewOf is a member's view of its blocks; it has none: it sees a byte that it does not use.
func viewOf(blocks [][2]int64) (v FileView, size int64, err error) {
	b := datatype.Basic(datatype.Byte)
	if len(blocks) == 0 {
		return FileView{Etype: b, Filetype: b, Datarep: "native"}, 0, nil
	}
	var lens, disps []int64
	for _, x := range blocks {
		lens, disps, size = append(lens, x[1]), append(disps, x[0]), size+x[1]
	}
	t, err := datatype.Hindexed(lens, disps, b)
	if err == nil {
		err = t.Commit()
	}
	return FileView{Etype: b, Filetype: t, Datarep: "native"}, size, err
}

// TestFileTogether: whoever of the members reads and writes for whom, and in which pieces, each
// gets its data and nothing else of the file changes.
func TestFileTogether(t *testing.T) {
	for i, hints := range [][]string{
		{"romio_cb_write", "disable", "romio_cb_read", "disable", "romio_ds_write", "disable", "romio_ds_read", "disable"},
		{"romio_cb_write", "disable", "romio_cb_read", "disable", "romio_ds_write", "enable", "romio_ds_read", "enable", "ind_wr_buffer_size", "64", "ind_rd_buffer_size", "50"},
		{"romio_cb_write", "enable", "romio_cb_read", "enable"},
		{"romio_cb_write", "enable", "romio_cb_read", "enable", "cb_buffer_size", "100", "romio_ds_write", "enable"},
		{"romio_cb_write", "enable", "romio_cb_read", "enable", "cb_buffer_size", "4096", "cb_nodes", "3", "romio_ds_write", "disable", "romio_ds_read", "disable"},
		{"romio_no_indep_rw", "true", "cb_nodes", "2", "striping_unit", "64", "cb_buffer_size", "128", "romio_ds_write", "enable"},
		{},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for _, blocks := range []int{0, 1, 60, 4000} {
				withHints(t, r, blocks, hints)
			}
		})
	}
}

func withHints(t *testing.T, r *rand.Rand, blocks int, hints []string) {
	t.Helper()
	const members = 3
	where, size := scattered(r, members, blocks)
	name := filepath.Join(t.TempDir(), "data")
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(r.IntN(256))
	}
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	data := make([][]byte, members)
	for m, all := range where {
		for _, x := range all {
			for k := range x[1] {
				b := byte(r.IntN(256))
				data[m], want[x[0]+k] = append(data[m], b), b
			}
		}
	}
	layout{procs: members}.run(t, func(_ *testing.T, c *Comm) error {
		f, err := c.FileOpen(name, ModeReadWrite, hintsOf(hints...))
		if err != nil {
			return err
		}
		mine := data[c.Rank()]
		v, n, err := viewOf(where[c.Rank()])
		if err := first(err, f.SetView(v)); err != nil {
			return err
		}
		st, err := f.WriteAtAll(0, Of(mine))
		if err := first(err, expect("written", st.Bytes(), n)); err != nil {
			return err
		}
		got := make([]byte, n)
		st, err = f.ReadAll(Of(got))
		if err := first(err, expect("read", st.Bytes(), n)); err != nil {
			return err
		}
		if !bytes.Equal(got, mine) {
			return fmt.Errorf("rank %d has read %x, has written %x", c.Rank(), got, mine)
		}
		q, err := f.IreadAtAll(0, Of(got))
		if err != nil {
			return err
		}
		st, err = q.Wait()
		return errors.Join(err, expect("read later", st.Bytes(), n), f.Close())
	})
	if got := []byte(contentOf(t, name)); !bytes.Equal(got, want) {
		for i := range want {
			if i >= len(got) || got[i] != want[i] {
				t.Fatalf("%v, %d blocks: byte %d of %d is wrong; the file has %d", hints, blocks, i, len(want), len(got))
			}
		}
		t.Fatalf("%v: the file has %d bytes, want %d", hints, len(got), len(want))
	}
}

// TestFileEnd: each member learns how much of its data the file has, by all ways to read.
func TestFileEnd(t *testing.T) {
	for _, how := range []string{"enable", "disable"} {
		name := filepath.Join(t.TempDir(), "data")
		text := bytes.Repeat([]byte("0123456789"), 10)[:97]
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		layout{procs: 3}.run(t, func(_ *testing.T, c *Comm) error {
			f, err := c.FileOpen(name, ModeReadOnly, hintsOf("romio_cb_read", how, "cb_buffer_size", "40", "cb_nodes", "2", "striping_unit", "20"))
			if err != nil {
				return err
			}
			b := datatype.Basic(datatype.Byte)
			stripe, err := TypeResized(b, 0, 3)
			if err := first(err, stripe.Commit(), f.SetView(FileView{Displacement: int64(c.Rank()), Etype: b, Filetype: stripe, Datarep: "native"})); err != nil {
				return err
			}
			got := bytes.Repeat([]byte{'-'}, 50)
			st, err := f.ReadAll(Of(got))
			want := bytes.Repeat([]byte{'-'}, 50)
			n := 0
			for at := c.Rank(); at < len(text); at += 3 {
				want[n] = text[at]
				n++
			}
			return first(err, expect("bytes", st.Bytes(), int64(n)), expect("read", string(got), string(want)), f.Close())
		})
	}
}

// TestFileFull: an error of the member that writes for all is an error of all.
func TestFileFull(t *testing.T) {
	layout{procs: 3}.run(t, func(_ *testing.T, c *Comm) error {
		f, err := c.FileOpen("/dev/full", ModeReadWrite, hintsOf("romio_cb_write", "enable"))
		if err != nil {
			return err
		}
		n := 0
		if c.Rank() == 1 {
			n = 100 // rank 0 writes it
		}
		err = class("full", second(f.WriteAtAll(int64(c.Rank()), Of(make([]byte, n)))), mpierr.NoSpace)
		q, failed := f.IwriteAll(Of(make([]byte, n)))
		if failed == nil {
			_, failed = q.Wait()
		}
		return first(err, class("later", failed, mpierr.NoSpace), class("by itself", second(f.Write(Of(make([]byte, 5)))), mpierr.NoSpace), f.Close())
	})
}

// TestFileHasErrorOfOne: a member with a wrong argument does not leave the others waiting.
func TestFileHasErrorOfOne(t *testing.T) {
	inFile(t, func(c *Comm, f *File) error {
		offset, b := int64(0), Of([]byte{1})
		if c.Rank() == 1 {
			offset = -1
		}
		err := class("offset", second(f.WriteAtAll(offset, b)), mpierr.Arg)
		if c.Rank() == 2 {
			b = Buffer{}
		}
		return first(err, class("buffer", second(f.WriteAll(b)), mpierr.Type), class("ordered", second(f.WriteOrdered(b)), mpierr.Type))
	})
}

func TestFileHints(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data")
	layout{procs: 3}.run(t, func(_ *testing.T, c *Comm) error {
		f, err := c.FileOpen(name, ModeCreate|ModeReadWrite, hintsOf("cb_nodes", "2", "cb_buffer_size", "12345", "romio_cb_read", "Disable", "romio_ds_write", "maybe", "ind_rd_buffer_size", "-3", "mine", "x"))
		if err != nil {
			return err
		}
		if err := f.SetInfo(hintsOf("romio_cb_write", "enable")); err != nil {
			return err
		}
		i, err := f.GetInfo()
		for key, want := range map[string]string{
			"cb_nodes": "2", "cb_buffer_size": "12345", "romio_cb_read": "disable", "romio_cb_write": "enable", "romio_ds_write": "automatic", "romio_ds_read": "automatic",
			"ind_rd_buffer_size": "4194304", "ind_wr_buffer_size": "1048576", "romio_no_indep_rw": "false", "mine": "x", "romio_aggregator_list": "0,1",
		} {
			got, _, bad := i.Get(key)
			err = first(err, bad, expect(key, got, want))
		}
		return first(err, f.Close())
	})
}

// locker locks bytes of a file as another program would.
type locker struct{ f *os.File }

func (l locker) set(kind int16, lo, n int64) error {
	return unix.FcntlFlock(l.f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: lo, Len: n})
}

// waited makes progress until an operation is done or waits for a lock of the file, and reports
// whether it is done.
func (l locker) waited(q *Request) (done bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(l.f.Fd()), &st); err != nil {
		return false, err
	}
	inode := fmt.Sprintf(":%d ", st.Ino)
	for !done && err == nil {
		text, bad := os.ReadFile("/proc/locks")
		if bad != nil {
			return false, bad
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "-> OFDLCK") && strings.Contains(line, inode) {
				return false, nil
			}
		}
		done, _, err = q.Test()
	}
	return done, err
}

// withLock opens a file that has bytes 0 to 99, with hints, in two members; body gets another file
// that is the same.
func withLock(t *testing.T, hints []string, body func(c *Comm, f *File, other locker) error) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(name, bytes.Repeat([]byte{'.'}, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	layout{procs: 2}.run(t, func(_ *testing.T, c *Comm) error {
		f, err := c.FileOpen(name, ModeReadWrite, hintsOf(hints...))
		if err != nil {
			return err
		}
		other, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := body(c, f, locker{other}); err != nil {
			return err // the other member might wait elsewhere than in Close
		}
		return errors.Join(other.Close(), f.Close())
	})
	return contentOf(t, name)
}

// TestFileLater: nonblocking calls return while the file cannot be written yet, collective ones
// too, and the members go on with other operations meanwhile.
func TestFileLater(t *testing.T) {
	got := withLock(t, nil, func(c *Comm, f *File, other locker) error {
		if err := f.SetAtomicity(true); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := other.set(unix.F_WRLCK, 0, 100); err != nil {
				return err
			}
		}
		if err := Barrier(c); err != nil {
			return err
		}
		at := int64(10 * c.Rank())
		one, err := f.IwriteAt(at, Of([]byte("one")))
		all, err2 := f.IwriteAtAll(at+5, Of([]byte("all")))
		if err := first(err, err2, Barrier(c)); err != nil {
			return err
		}
		done, err := other.waited(&one)
		doneAll, _, err2 := all.Test()
		if err := first(err, err2, expect("done", done, false), expect("done by all", doneAll, false), class("cancelled", all.Cancel(), mpierr.Request), class("freed", all.Free(), mpierr.Request), one.Cancel()); err != nil {
			return err
		}
		free, err := f.IwriteAt(at+20, Of([]byte("free")))
		if err := first(err, free.Free(), Barrier(c)); err != nil {
			return err
		}
		if c.Rank() == 0 {
			if err := other.set(unix.F_UNLCK, 0, 100); err != nil {
				return err
			}
		}
		st, err := one.Wait()
		stAll, err2 := all.Wait()
		if !st.Cancelled() { // it may not have begun when it was cancelled
			err = first(err, expect("bytes", st.Bytes(), int64(3)))
		}
		_, err3 := f.WriteAt(at, Of([]byte("one")))
		return first(err, err2, err3, expect("bytes of all", stAll.Bytes(), int64(3)))
	})
	if want := "one..all..one..all..free......free"; got[:len(want)] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFileSieved: a member that writes small pieces with what is between them changes nothing there
// that others write under a lock.
func TestFileSieved(t *testing.T) {
	got := withLock(t, []string{"romio_ds_write", "enable", "romio_cb_write", "disable"}, func(c *Comm, f *File, other locker) error {
		b := datatype.Basic(datatype.Byte)
		sparse, err := TypeResized(b, 0, 3)
		if err := first(err, sparse.Commit(), f.SetView(FileView{Displacement: 1, Etype: b, Filetype: sparse, Datarep: "native"})); err != nil {
			return err
		}
		if c.Rank() > 0 {
			return first(Barrier(c), Barrier(c))
		}
		if err := other.set(unix.F_WRLCK, 9, 1); err != nil {
			return err
		}
		q, err := f.IwriteAt(0, Of([]byte("abcde"))) // bytes 1, 4, ... 13
		if err := first(err, Barrier(c)); err != nil {
			return err
		}
		done, err := other.waited(&q)
		if err := first(err, expect("done beside a lock", done, false), second(other.f.WriteAt([]byte("X"), 9)), other.set(unix.F_UNLCK, 9, 1)); err != nil {
			return err
		}
		return first(second(q.Wait()), Barrier(c))
	})
	if want := ".a..b..c.Xd..e...."; got[:len(want)] != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFileFar: files of more than 2 GiB, and types that span more.
func TestFileFar(t *testing.T) {
	const far = 5 << 30
	name := inFile(t, func(c *Comm, f *File) error {
		b := datatype.Basic(datatype.Byte)
		sparse, err := TypeVector(3, 4, far, b)
		if err == nil {
			sparse, err = TypeResized(sparse, 0, 3*far)
		}
		if err := first(err, sparse.Commit(), f.SetView(FileView{Displacement: far + int64(4*c.Rank()), Etype: b, Filetype: sparse, Datarep: "native"})); err != nil {
			return err
		}
		text := fmt.Sprintf("rank%d-farther", c.Rank())[:12]
		got := make([]byte, 12)
		if err := second(f.WriteAll(Of([]byte(text)))); err != nil {
			return err
		}
		at, err := f.ByteOffset(13)
		st, err2 := f.ReadAtAll(0, Of(got))
		size, err3 := f.Size()
		return first(err, err2, err3, expect("text", string(got), text), expect("bytes", st.Bytes(), int64(12)), expect("size", size, int64(3*far+12)),
			expect("byte", at, int64(4*far+4*c.Rank()+1)))
	})
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]byte, 12)
	if _, err := f.ReadAt(got, 2*far); err != nil || string(got) != "0-fa1-fa2-fa" {
		t.Errorf("%q, %v", got, err)
	}
}
