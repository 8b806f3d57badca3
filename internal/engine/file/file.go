package file

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/mpierr"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/construct"
	"github.com/openimpi/impi/internal/engine/object"
	"github.com/openimpi/impi/internal/engine/proc"
	"github.com/openimpi/impi/internal/fileview"
)

// The access modes of a file (MPI-4.1, 14.2.1), with the values of the MPI ABI. Exactly one of
// ModeReadOnly, ModeWriteOnly and ModeReadWrite is set.
const (
	ModeAppend        = 1 // all pointers begin at the end of the file
	ModeCreate        = 2
	ModeDeleteOnClose = 4
	ModeExclusive     = 8 // with ModeCreate: the file must not exist
	ModeReadOnly      = 16
	ModeReadWrite     = 32
	ModeSequential    = 64 // only the shared pointer is used
	ModeWriteOnly     = 256
)

// File is a file that all members of a communicator have opened, in a file system that all of them
// see. Errors are returned and no handler is told of them; they have the classes of files (MPI-4.1,
// 14.8), and those of the communication between the members. Methods that all members call fail for
// all of them.
//
// A File may be used by several goroutines.
type File struct {
	comm   *proc.Comm // a duplicate of the program's, for the messages of f
	file   *os.File
	disk   storage // file as a storage
	name   string
	mode   int
	info   *proc.Info
	chosen []int          // the aggregators' ranks
	turns  line           // order of collective operations
	under  sync.WaitGroup // nonblocking operations under way

	mu           sync.Mutex
	view         *fileview.View
	datarep      string // of the view; empty means native
	in           rep    // representation for datarep
	disp         int64
	etype, ftype *proc.Datatype // nil: bytes
	pos          int64          // of the individual pointer, in bytes of data
	atomic       bool
	closed       bool
	split        *proc.Request // of the split operation that has begun, between its two halves
	h            hints

	shared sharedPointer
}

// Open opens a file for all members of parent, or for none if one of them cannot (MPI-4.1, 14.2.1).
// A nil info has no hints.
func Open(parent *proc.Comm, name string, mode int, info *proc.Info) (*File, error) {
	f := &File{name: name, mode: mode, view: fileview.Bytes(), in: rep{is: inMemory}}
	var err error
	if f.comm, err = construct.DupFor(parent, nil, "FileOpen"); err != nil {
		return nil, err
	}
	if info == nil {
		info = proc.NewInfo()
	}
	f.info, err = info.Dup()
	f.shared.path, f.shared.info = name, f.info
	if err = f.open(err); err == nil {
		err = f.tune()
	}
	if err != nil {
		if f.file != nil {
			_ = f.file.Close() // the error is that of the members
		}
		return nil, errors.Join(err, construct.Free(f.comm))
	}
	return f, nil
}

// tune finds out what the file is in, takes the hints and chooses the aggregators.
func (f *File) tune() error {
	f.disk.fd, f.disk.fs, f.disk.mode = int(f.file.Fd()), systemOf(f.file), f.mode
	f.h = f.disk.fs.defaults()
	f.h.take(f.info)
	f.chosen = []int{0}
	if f.comm.Size() == 1 {
		return nil
	}
	var err error
	f.chosen, err = choose(f.comm, f.info)
	return err
}

// choose has rank 0 choose the aggregators by its hints.
func choose(c *proc.Comm, info *proc.Info) (chosen []int, err error) {
	nodes, _ := strconv.Atoi(valueOf(info, hintNodes))
	config := valueOf(info, hintConfig)
	ranks := make([]int32, 2+c.Size())
	if config != "" {
		ranks[1] = 1
	}
	if err := collective.Bcast(c, ranks[1:2], 0); err != nil {
		return nil, err
	}
	names := make(map[string]string)
	hosts := hostsOf(c)
	if ranks[1] != 0 {
		const most = 256
		mine, all := make([]byte, most), make([]byte, most*c.Size())
		name, _ := os.Hostname() // then only * names this host
		copy(mine, name)
		if err := collective.Allgather(c, mine, all); err != nil {
			return nil, err
		}
		for i, h := range hosts {
			names[h] = string(bytes.TrimRight(all[i*most:(i+1)*most], "\x00"))
		}
	}
	if c.Rank() == 0 {
		for i, rank := range aggregators(hosts, names, nodes, config) {
			ranks[0], ranks[2+i] = int32(i+1), int32(rank)
		}
	}
	if err := collective.Bcast(c, ranks, 0); err != nil {
		return nil, err
	}
	for _, rank := range ranks[2 : 2+ranks[0]] {
		chosen = append(chosen, int(rank))
	}
	return chosen, nil
}

// hostsOf returns names of the members' hosts, which are equal for those of one host.
func hostsOf(c *proc.Comm) (hosts []string) {
	for p := range c.Comm.Group().All() {
		x := c.Process().Worlds.ProcOf(p)
		if x.Machine == "" {
			x.Machine = fmt.Sprintf("%d/%d", x.Client, x.Node)
		}
		hosts = append(hosts, x.Machine)
	}
	return hosts
}

func (f *File) hints() hints {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.h
}

func flags(mode int) (int, error) {
	var f int
	switch mode & (ModeReadOnly | ModeReadWrite | ModeWriteOnly) {
	case ModeReadOnly:
		f = os.O_RDONLY
	case ModeReadWrite:
		f = os.O_RDWR
	case ModeWriteOnly:
		f = os.O_WRONLY
	default:
		return 0, fault(mpierr.Amode, "amode %#x: one of MPI_MODE_RDONLY, _RDWR and _WRONLY has to be given", mode)
	}
	if mode&ModeReadOnly != 0 && mode&(ModeCreate|ModeExclusive) != 0 || mode&ModeReadWrite != 0 && mode&ModeSequential != 0 {
		return 0, fault(mpierr.Amode, "amode %#x has modes that exclude each other", mode)
	}
	return f, nil
}

// open opens the file. Rank 0 opens it first, and creates it if needed. bad is why this member
// cannot open it.
func (f *File) open(bad error) error {
	how, err := flags(f.mode)
	err = errors.Join(bad, err)
	made := how
	if f.mode&ModeCreate != 0 {
		made |= os.O_CREATE
	}
	if f.mode&ModeExclusive != 0 {
		made |= os.O_EXCL
	}
	first := []int64{0, 0, 0} // the class of the first member's error, the file's id, where pointers begin
	if f.comm.Rank() == 0 {
		if err == nil {
			err = f.openAs(made)
		}
		id, bad := newID()
		err = errors.Join(err, bad)
		first[0], first[1] = int64(proc.ErrorClass(err)), id
		if err == nil && f.mode&ModeAppend != 0 {
			first[2], _ = f.Size() // if it fails, the others see an empty file
		}
	}
	if bad := collective.Bcast(f.comm, first, 0); bad != nil {
		return bad
	}
	f.shared.id, f.shared.start, f.pos = first[1], first[2], first[2]
	if first[0] != int64(mpierr.Success) {
		if err == nil {
			err = fault(proc.Class(first[0]), "rank 0 could not open %s", f.name)
		}
		return err
	}
	if f.comm.Rank() != 0 && err == nil {
		err = f.openAs(how)
	}
	return f.agree(err)
}

func (f *File) openAs(flag int) (err error) {
	f.file, err = os.OpenFile(f.name, flag, 0o666)
	return ofSystem(err)
}

// Close closes the file for all members (MPI-4.1, 14.2.2). The file cannot be used afterwards,
// whatever the error is.
func (f *File) Close() error {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	defer f.turns.enter()()
	f.under.Wait()
	err := f.agree(ofSystem(f.file.Close()))
	err = errors.Join(err, f.shared.drop())
	if f.mode&ModeDeleteOnClose != 0 {
		err = errors.Join(err, f.atRoot(func() error { return Delete(f.name) }))
	}
	return errors.Join(err, construct.Free(f.comm))
}

// Delete deletes a file by its name (MPI-4.1, 14.2.3).
func Delete(name string) error { return ofSystem(os.Remove(name)) }

// Size returns the size of the file in bytes (MPI-4.1, 14.2.6).
func (f *File) Size() (int64, error) {
	i, err := f.file.Stat()
	if err != nil {
		return 0, ofSystem(err)
	}
	return i.Size(), nil
}

// SetSize cuts the file off, or makes it longer. All members call it (MPI-4.1, 14.2.4).
func (f *File) SetSize(size int64) error {
	defer f.turns.enter()()
	return f.atRoot(func() error {
		if size < 0 {
			return fmt.Errorf("%w: size is %d", proc.ErrArg, size)
		}
		return ofSystem(f.file.Truncate(size))
	})
}

// Preallocate makes the file at least size bytes long. All members call it (MPI-4.1, 14.2.5).
func (f *File) Preallocate(size int64) error {
	defer f.turns.enter()()
	return f.atRoot(func() error {
		now, err := f.Size()
		switch {
		case err != nil:
			return err
		case size < 0:
			return fmt.Errorf("%w: size is %d", proc.ErrArg, size)
		case size > now:
			return ofSystem(f.file.Truncate(size))
		}
		return nil
	})
}

// Sync makes what was written reach the storage, for all members (MPI-4.1, 14.6).
func (f *File) Sync() error {
	defer f.turns.enter()()
	if f.mode&ModeReadOnly != 0 {
		return f.agree(nil)
	}
	return f.agree(ofSystem(f.file.Sync()))
}

// Group returns a new group of the members (MPI-4.1, 14.2.7).
func (f *File) Group() (*proc.Group, error) { return f.comm.Group() }

// Mode returns the sum of access modes with which the file was opened (MPI-4.1, 14.2.7).
func (f *File) Mode() int { return f.mode }

// SetInfo sets hints; hints that i does not have stay as they are (MPI-4.1, 14.2.8).
func (f *File) SetInfo(i *proc.Info) error {
	n, err := i.Len()
	for k := 0; k < n && err == nil; k++ {
		var key, value string
		if key, err = i.Key(k); err == nil {
			value, _, err = i.Get(key)
		}
		if err == nil {
			err = f.info.Set(key, value)
		}
	}
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.h.take(i)
	}
	return err
}

// Info returns the hints: those that were set, and the values in effect of those that are
// understood (MPI-4.1, 14.2.8).
func (f *File) Info() (*proc.Info, error) {
	i, err := f.info.Dup()
	if err != nil {
		return nil, err
	}
	h := f.hints()
	h.stripe = cmp.Or(h.stripe, f.disk.fs.block)
	return i, errors.Join(h.tell(i), i.Set(hintNodes, strconv.Itoa(len(f.chosen))), i.Set(hintAggregates, rankList(f.chosen)))
}

// SetAtomicity sets whether conflicting operations of several members are executed one after the
// other (MPI-4.1, 14.6).
func (f *File) SetAtomicity(on bool) error {
	defer f.turns.enter()()
	how := exclusive
	if f.mode&ModeReadOnly != 0 {
		how = shared
	}
	var err error
	if on { // fail now if the file system cannot do it
		err = f.disk.locked(how, 0, 1, func() error { return nil })
	}
	if err := f.agree(ofSystem(err)); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.atomic = on
	return nil
}

// Atomicity returns what SetAtomicity has set (MPI-4.1, 14.6).
func (f *File) Atomicity() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.atomic
}

// Extent returns the distance in bytes between items of t in the file (MPI-4.1, 14.5.1).
func (f *File) Extent(t *proc.Datatype) (int64, error) {
	t, err := f.rep().filed(t)
	if err != nil {
		return 0, err
	}
	return t.Extent(), nil
}

// agree returns an error if any member has one: err itself, or an error of another member's class.
// All members call it.
func (f *File) agree(err error) error {
	mine, all := []int32{int32(proc.ErrorClass(err))}, []int32{0}
	if bad := collective.Allreduce(f.comm, mine, all, datatype.Max); bad != nil {
		return bad
	}
	return othersError(err, all[0])
}

// othersError returns err, or if there is none that of another member, by its class.
func othersError(err error, class int32) error {
	if err == nil && class != int32(mpierr.Success) {
		return fault(proc.Class(class), "another member could not do it")
	}
	return err
}

func (f *File) atRoot(do func() error) error {
	var err error
	if f.comm.Rank() == 0 {
		err = do()
	}
	return f.agree(err)
}

// kept returns a duplicate of a datatype, since the program may free t.
func kept(t *proc.Datatype) (*proc.Datatype, error) {
	if t.Named() {
		return t, nil
	}
	return object.TypeDup(t)
}
