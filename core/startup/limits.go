package startup

import (
	"time"

	"github.com/openimpi/impi/core/wire"
)

// Bounds on what peers send. A job that needs more does not start.
const (
	MaxProcs      = 1 << 20           // procs of a job, and hosts of a job
	MaxSubmission = MaxProcs*16 + 16  // bytes of a command to the server: every proc's host ID
	MaxAnswer     = 64 << 20          // bytes of a command from the server
	MaxPending    = 2 * MaxSubmission // bytes of one client that wait for other clients
	MaxLabels     = 256               // labels that one client submits
	MaxVersions   = 64                // versions that one client lists
	MaxCard       = 4096              // bytes of a proc's business card
	maxUnknown    = 64 << 10          // bytes of a command before IMPI
)

// TokenSize is the size of a job's token.
const TokenSize = 32

// DefaultLimit is the maximum time that both sides wait for all clients to join, and then for all
// clients to send DONE. A client waits Grace longer, so that the server, which can name the missing
// clients, reports them.
const (
	DefaultLimit = 60 * time.Second
	Grace        = 2 * time.Second
)

// Defaults of the values that every client may change, and Unchosen, which stands for the
// default in the two collective crossovers. IMPI ch.2, Client labels: -1 selects the
// default.
const (
	DefaultDataLen   = 262144
	DefaultTagUB     = 1<<31 - 1
	DefaultXSize     = 1024
	DefaultMaxLinear = 4
	DefaultAckMark   = 32
	DefaultHiWater   = 128
	Unchosen         = -1
)

// MinTagUB is the least MPI_TAG_UB that MPI allows (MPI-4.1, 9.1.2).
const MinTagUB wire.Tag = 32767
