package wireup

import (
	"encoding/json"
	"fmt"
	"iter"
	"os"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
)

const maxJob = 64 << 20

// Share puts the job without its Procs into a sealed memfd, to be sent with KindWelcome. The caller
// closes it.
func (j *Job) Share() (*os.File, error) {
	own := *j
	own.Procs = nil
	b, err := json.Marshal(&own)
	if err != nil {
		return nil, fmt.Errorf("job description: %w", err)
	}
	return sealed("impi-job", b)
}

// sealed makes a memfd that nobody can change.
func sealed(name string, b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("%s: memfd: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(b); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: seal: %w", name, err)
	}
	return f, nil
}

// OpenJob reads the job and maps the table of its procs from the memfds that came with
// KindWelcome, and takes the descriptors over.
func OpenJob(fd, procs int) (*Job, error) {
	f, shared := os.NewFile(uintptr(fd), "impi-job"), os.NewFile(uintptr(procs), "impi-procs")
	defer f.Close()
	defer shared.Close()
	table, err := MapProcs(shared)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("job description: %w", err)
	}
	if st.Size() > maxJob {
		return nil, fmt.Errorf("job description of %d bytes, at most %d: %w", st.Size(), maxJob, ErrMessage)
	}
	b := make([]byte, st.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		return nil, fmt.Errorf("job description: %w", err)
	}
	return readJob(b, table)
}

func readJob(b []byte, procs startup.Procs) (j *Job, err error) {
	j = &Job{}
	if err := json.Unmarshal(b, j); err != nil {
		return nil, fmt.Errorf("job description: %w: %w", ErrMessage, err)
	}
	if j.table, err = newTable(procs, j.Views); err != nil {
		return nil, err
	}
	j.Procs, j.Views = nil, nil
	return j, j.check()
}

// Describe returns the job's description for other worlds, an encoded Description of core/dynamic.
func (j *Job) Describe() []byte {
	if j.table == nil {
		return j.World
	}
	return j.table.procs.Describe(j.World)
}

// Table returns the table of the job's procs; nil if they are in Procs.
func (j *Job) Table() *Table { return j.table }

// Size returns the number of the job's procs.
func (j *Job) Size() int {
	if j.table != nil {
		return j.table.Size()
	}
	return len(j.Procs)
}

// Proc returns what the job's description says of the proc with a world rank, which must exist.
func (j *Job) Proc(r wire.WorldRank) (p Proc) {
	if j.table == nil {
		return j.Procs[r]
	}
	if p = j.table.Proc(int(r)); r == j.Rank {
		p.Path = PathSelf
	}
	return p
}

// Runs yields the job's procs by ascending rank, in the longest runs of procs for which the job has
// the same fields. It does not mark this proc's path to itself.
func (j *Job) Runs() iter.Seq[ProcRun] {
	if j.table != nil {
		return j.table.Runs()
	}
	return func(yield func(ProcRun) bool) {
		for r := 0; r < len(j.Procs) && yield(ProcRun{First: wire.WorldRank(r), N: 1, Proc: j.Procs[r]}); r++ {
		}
	}
}

func (j *Job) check() error {
	switch {
	case int(j.Rank) < 0 || int(j.Rank) >= j.Size():
		return fmt.Errorf("job description: rank %d of %d: %w", j.Rank, j.Size(), ErrMessage)
	case j.Dialect > wire.Draft:
		return fmt.Errorf("job description: dialect %d: %w", j.Dialect, ErrMessage)
	case j.DataLen < 1 || j.AckMark < 1 || j.AckMark > j.HiWater:
		return fmt.Errorf("job description: datalen %d, ackmark %d, hiwater %d: %w", j.DataLen, j.AckMark, j.HiWater, ErrMessage)
	}
	return nil
}

// Identity returns the proc's host and pid as packets have them (IMPI ch.3, Packet Format).
func (p *Proc) Identity() wire.Proc { return wire.Proc{Host: wire.HostID(p.Host), PID: p.PID} }
