package startup

import (
	"fmt"
	"slices"
	"time"

	"github.com/openimpi/impi/core/wire"
)

// Params are the values that every client proposes and on which all clients settle (IMPI
// ch.2, Client labels and Host labels).
type Params struct {
	DataLen   uint32   // maximum user data bytes of a packet, at least 1; the smallest proposal counts
	TagUB     wire.Tag // 32767 to 2^31-1; the smallest proposal counts
	XSize     int32    // bytes, or Unchosen; must be equal everywhere
	MaxLinear int32    // masters, or Unchosen; must be equal everywhere
	AckMark   uint32   // packets, 1 to HiWater; the smallest proposal counts
	HiWater   uint32   // packets; the smallest proposal counts
}

// DefaultParams returns the values of a site whose job file does not set them.
func DefaultParams() Params {
	return Params{
		DataLen: DefaultDataLen, TagUB: DefaultTagUB,
		XSize: Unchosen, MaxLinear: Unchosen,
		AckMark: DefaultAckMark, HiWater: DefaultHiWater,
	}
}

// ClientConfig is what a client submits to the job.
type ClientConfig struct {
	Rank    wire.ClientRank
	Auth    Auth
	Dialect wire.Dialect
	Params  Params
	Hosts   []HostConfig // in local host order, at least one

	// Foreign hides that the client is one of ours: it does not list wire.PrivateVersion
	// and sends no cards.
	Foreign bool
	// Versions are listed in addition to 0.0 and wire.PrivateVersion, in any order. No
	// implementation supports them yet.
	Versions []wire.Version
	// Omit has labels that are not sent; they must be optional. The client uses the values
	// on which the others settle.
	Omit []wire.Label

	// Token is random bytes. If all clients are ours, the token of client 0 is the job's.
	Token [TokenSize]byte

	// Spare makes the client a spare site, which has no rank and no procs and learns the result of
	// the others' startup. Of the other fields only Auth, Dialect and Limit count then, and Limit
	// does not bound the time that the others take.
	Spare bool

	// Decline makes the client send its rank to the server and, as the reason why it does not join,
	// this error. Of the other fields only Rank, Auth and Limit count then.
	Decline error

	Limit time.Duration // time for all clients to come, and again for DONE; 0 means DefaultLimit
}

// HostConfig is one host of a client, as it is sent to the others (IMPI ch.2, Host labels).
type HostConfig struct {
	Address wire.HostID // address where it listens
	Port    int
	Procs   []ProcConfig
}

// ProcConfig is one proc of a host; its rank in MPI_COMM_WORLD follows from all clients' lists.
type ProcConfig struct {
	ID   wire.Proc // unique in the job: the machine's address, and a number of the proc
	Card []byte    // business card, at most MaxCard bytes
}

func (c *ClientConfig) nprocs() int {
	n := 0
	for i := range c.Hosts {
		n += len(c.Hosts[i].Procs)
	}
	return n
}

// ErrorName returns how texts of errors call the client: by its rank, if it has one.
func (c *ClientConfig) ErrorName() string {
	if c.Spare {
		return "spare site"
	}
	return fmt.Sprintf("client %d", c.Rank)
}

func (c *ClientConfig) limit() time.Duration {
	if c.Limit > 0 {
		return c.Limit + Grace
	}
	return DefaultLimit + Grace
}

// Validate returns the first fault as an error that wraps ErrConfig, or nil.
func (c *ClientConfig) Validate() error {
	switch {
	case c.Spare && c.Auth.Mask() != 0:
		return nil
	case c.Rank < 0 || c.Rank >= wire.MaxClients:
		return fmt.Errorf("%w: client rank %d is not in 0 to %d", ErrConfig, c.Rank, wire.MaxClients-1)
	case c.Auth.Mask() == 0:
		return fmt.Errorf("%w: no authentication mechanism is enabled", ErrConfig)
	case c.Decline != nil:
		return nil // a client that declines sends nothing else
	case len(c.Hosts) == 0:
		return fmt.Errorf("%w: a client needs a host", ErrConfig)
	case c.nprocs() == 0 || c.nprocs() > MaxProcs || len(c.Hosts) > MaxProcs:
		return fmt.Errorf("%w: a client needs 1 to %d procs, not %d", ErrConfig, MaxProcs, c.nprocs())
	}
	if err := c.Params.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if err := c.validateLabels(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c.validateHosts()
}

func (p *Params) validate() error {
	switch {
	case p.DataLen < 1:
		return fmt.Errorf("%w: data length is 0", ErrValue)
	case p.TagUB < MinTagUB:
		return fmt.Errorf("%w: tag upper bound %d is below %d", ErrValue, p.TagUB, MinTagUB)
	case p.XSize < Unchosen:
		return fmt.Errorf("%w: XSIZE %d is negative", ErrValue, p.XSize)
	case p.MaxLinear < Unchosen:
		return fmt.Errorf("%w: MAXLINEAR %d is negative", ErrValue, p.MaxLinear)
	case p.AckMark < 1 || p.AckMark > p.HiWater:
		return fmt.Errorf("%w: ackmark %d is not in 1 to hiwater, which is %d", ErrValue, p.AckMark, p.HiWater)
	}
	return nil
}

func (c *ClientConfig) validateLabels() error {
	if n := len(c.versions()); n > MaxVersions {
		return fmt.Errorf("%w: %d versions; a client may list %d", ErrTooLong, n, MaxVersions)
	}
	for _, l := range c.Omit {
		switch info, _ := l.Info(); {
		case l == wire.LabelCards:
			return fmt.Errorf("%w: %v is sent whenever all clients are ours; Foreign avoids that", ErrValue, l)
		case !info.Optional:
			return fmt.Errorf("%w: %v cannot be left out", ErrValue, l)
		}
	}
	return nil
}

// versions returns the versions that the client lists: 0.0 first, ascending, none twice.
func (c *ClientConfig) versions() []wire.Version {
	list := append([]wire.Version{wire.Version00}, c.Versions...)
	if !c.Foreign {
		list = append(list, wire.PrivateVersion)
	}
	slices.SortFunc(list, wire.Version.Compare)
	return slices.Compact(list)
}

// labels returns the labels that the client sends in any case, in ascending order.
func (c *ClientConfig) labels() (list []wire.Label) {
	for _, info := range wire.StandardLabels() {
		if !slices.Contains(c.Omit, info.Label) {
			list = append(list, info.Label)
		}
	}
	return list
}

func (c *ClientConfig) validateHosts() error {
	seen := make(map[wire.Proc]bool, c.nprocs())
	cards := TokenSize
	for i := range c.Hosts {
		h := &c.Hosts[i]
		if h.Port < 0 || h.Port > 65535 {
			return fmt.Errorf("%w: host %d: port %d is not in 0 to 65535", ErrConfig, i, h.Port)
		}
		for _, p := range h.Procs {
			cards += 4 + len(p.Card)
			switch {
			case seen[p.ID]:
				return fmt.Errorf("%w: host %d: two procs are %v", ErrConfig, i, p.ID)
			case c.Dialect == wire.Draft && p.ID.PID != int64(uint32(p.ID.PID)):
				return fmt.Errorf("%w: host %d: pid %d does not fit into the draft's 32 bits", ErrConfig, i, p.ID.PID)
			case len(p.Card) > MaxCard:
				return fmt.Errorf("%w: host %d: the card of %v has %d bytes, more than %d", ErrConfig, i, p.ID, len(p.Card), MaxCard)
			}
			seen[p.ID] = true
		}
	}
	if cards > MaxSubmission-16 {
		return fmt.Errorf("%w: all cards together have %d bytes, more than %d", ErrConfig, cards, MaxSubmission-16)
	}
	return nil
}
