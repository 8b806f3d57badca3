package wireup

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/openimpi/impi/core/wire"
)

// maxJob is the size limit of a Job's JSON, in bytes.
const maxJob = 256 << 20

// Share puts the job into a sealed memfd, to be sent with KindWelcome. The
// caller closes it.
func (j *Job) Share() (*os.File, error) {
	b, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("job description: %w", err)
	}
	fd, err := unix.MemfdCreate("impi-job", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("job description: memfd: %w", err)
	}
	f := os.NewFile(uintptr(fd), "impi-job")
	if _, err := f.Write(b); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("job description: %w", err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("job description: seal: %w", err)
	}
	return f, nil
}

// OpenJob reads the job from the memfd that came with KindWelcome, takes the
// descriptor over and closes it.
func OpenJob(fd int) (*Job, error) {
	f := os.NewFile(uintptr(fd), "impi-job")
	defer f.Close()
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
	var j Job
	if err := json.Unmarshal(b, &j); err != nil {
		return nil, fmt.Errorf("job description: %w: %w", ErrMessage, err)
	}
	return &j, j.check()
}

func (j *Job) check() error {
	switch {
	case int(j.Rank) < 0 || int(j.Rank) >= len(j.Procs):
		return fmt.Errorf("job description: rank %d of %d: %w", j.Rank, len(j.Procs), ErrMessage)
	case j.Dialect > wire.Draft:
		return fmt.Errorf("job description: dialect %d: %w", j.Dialect, ErrMessage)
	case j.DataLen < 1 || j.AckMark < 1 || j.AckMark > j.HiWater:
		return fmt.Errorf("job description: datalen %d, ackmark %d, hiwater %d: %w", j.DataLen, j.AckMark, j.HiWater, ErrMessage)
	}
	for r, p := range j.Procs {
		if len(p.Host) != len(wire.HostID{}) {
			return fmt.Errorf("job description: rank %d: host id of %d bytes: %w", r, len(p.Host), ErrMessage)
		}
		if p.Unexpected < 0 {
			return fmt.Errorf("job description: rank %d: %d bytes of unexpected messages: %w", r, p.Unexpected, ErrMessage)
		}
	}
	return nil
}

// Identity returns the proc's identity on the wire.
func (p *Proc) Identity() wire.Proc { return wire.Proc{Host: wire.HostID(p.Host), PID: p.PID} }
