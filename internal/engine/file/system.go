package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

type storage struct {
	fd       int
	mode     int // the access mode of MPI
	fs       *fileSystem
	locking  sync.Mutex  // held while bytes are locked
	lockless atomic.Bool // the file system has no locks
	gaps     atomic.Bool // some member's view has gaps
}

type fileSystem struct {
	remote bool  // each call costs a message to a server
	cached bool  // clients cache pages, and only locks make them read and write these back
	block  int64 // bytes of the file's units: pages or stripes
	call   int64 // number of bytes that can be moved in the time of a call
}

// Costs of calls: measured where the file is in the system's cache, and a guess for servers.
const (
	callMemory = 4 << 10 // tmpfs, which moves pages one by one
	callLocal  = 16 << 10
	callServer = 256 << 10
)

// Types of file systems, as statfs(2) gives them, that have servers.
var (
	cachedTypes = map[int64]bool{unix.NFS_SUPER_MAGIC: true, unix.SMB_SUPER_MAGIC: true, unix.SMB2_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, unix.V9FS_MAGIC: true, unix.AFS_SUPER_MAGIC: true}
	remoteTypes = map[int64]bool{
		0x0bd00bd0: true, // Lustre
		0x47504653: true, // GPFS
		0x19830326: true, // BeeGFS
		0x20030528: true, // OrangeFS
		0x7461636f: true, // OCFS2
		0x01161970: true, // GFS2

		unix.CEPH_SUPER_MAGIC: true, unix.FUSE_SUPER_MAGIC: true,
	}
)

// page is the least that caches and file systems keep as one.
const page = 4096

// systemOf returns what an open file is in. If that cannot be found out, it is taken for a local
// file system.
func systemOf(f *os.File) *fileSystem {
	fs := &fileSystem{block: page, call: callLocal}
	var s unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &s) == nil {
		kind := int64(uint32(s.Type))
		fs.cached = cachedTypes[kind]
		fs.remote = fs.cached || remoteTypes[kind]
		if kind == unix.TMPFS_MAGIC {
			fs.call = callMemory
		}
		if fs.remote {
			fs.call = callServer
		}
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) == nil && int64(st.Blksize) > page {
		fs.block = int64(st.Blksize)
	}
	return fs
}

// readAt reads into b from byte at on, until b is full or the file ends.
func (d *storage) readAt(b []byte, at int64) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = unix.Pread(d.fd, b[n:], at+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
			err = nil
			continue
		case err != nil, k == 0:
			return n, err
		}
		n += k
	}
	return n, err
}

func (d *storage) writeAt(b []byte, at int64) (n int, err error) {
	for n < len(b) && err == nil {
		var k int
		k, err = unix.Pwrite(d.fd, b[n:], at+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
			err = nil
			continue
		case err == nil && k == 0:
			return n, io.ErrShortWrite
		case err != nil:
			return n, err
		}
		n += k
	}
	return n, err
}

func (d *storage) reaches(end int64) bool {
	var st unix.Stat_t
	return unix.Fstat(d.fd, &st) == nil && st.Size >= end
}

type hold int16

const (
	shared    hold = unix.F_RDLCK
	exclusive hold = unix.F_WRLCK
)

var errNoLocks = errors.New("the file system has no locks of ranges of bytes; on NFS the mount option nolock may be the reason")

// locked calls do while bytes lo to hi of the file are locked. The lock is one of the open file, as
// all file systems have it that have locks, also between hosts, and not one of the process, which
// would lose it whenever it closes another file that is the same. So calls that lock something of
// one open file follow each other.
func (d *storage) locked(how hold, lo, hi int64, do func() error) error {
	d.locking.Lock()
	defer d.locking.Unlock()
	l := unix.Flock_t{Type: int16(how), Whence: io.SeekStart, Start: lo, Len: hi - lo}
	for {
		err := unix.FcntlFlock(uintptr(d.fd), unix.F_OFD_SETLKW, &l)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
			d.lockless.Store(true)
			return fmt.Errorf("%w (%w)", errNoLocks, err)
		case err != nil:
			return fmt.Errorf("bytes %d to %d cannot be locked: %w", lo, hi, err)
		}
		break
	}
	defer func() {
		l.Type = unix.F_UNLCK
		_ = unix.FcntlFlock(uintptr(d.fd), unix.F_OFD_SETLK, &l) // closing the file unlocks it, too
	}()
	return do()
}

func (d *storage) guard(write bool) (how hold, need bool) {
	switch {
	case d.lockless.Load():
		return shared, false
	case d.fs.cached && write:
		return exclusive, true
	case d.fs.cached:
		return shared, d.mode&ModeWriteOnly == 0
	}
	return shared, write && d.mode&ModeReadWrite != 0 && d.gaps.Load()
}

func (d *storage) plainly(write bool, lo, hi int64, do func() error) error {
	how, need := d.guard(write)
	if !need {
		return do()
	}
	err := d.locked(how, lo, hi, do)
	if errors.Is(err, errNoLocks) {
		return do() // then no other member sieves, either
	}
	return err
}
