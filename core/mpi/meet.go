package mpi

import "github.com/openimpi/impi/internal/engine/meet"

// CommJoin makes an intercommunicator of this proc and the one at the other end of a
// socket, which calls it as well (MPI_Comm_join). Each side's group is its proc alone.
// The two may be of one job or of several, which must be able to meet: a program that
// no node has started cannot.
//
// fd is a connected stream socket. It is used to agree on the rest and for nothing else;
// it stays open and the caller's, and what follows in it is not touched. No byte may be
// on its way in it. CommJoin blocks until the other end has called it too, for at most
// 30 seconds; then there may be a part of a message in the socket.
//
// Errors: ErrArg for what is no connected stream socket, or has its other end in this
// proc; ErrJoin, of class MPI_ERR_OTHER, where the other end does not join or cannot be
// reached; ErrAlone where no other procs can be met.
func CommJoin(fd int) (*Comm, error) { return outComm(meet.CommJoin(fd)) }

// Accept waits for somebody to connect to a port of the root's and makes an
// intercommunicator of c's group and that of those who do. All members of c, an
// intracommunicator, call it. port and info matter at the root only
// (MPI_Comm_accept). It waits for as long as nobody comes and the port is open. The info
// key timeout says after how many seconds it is to be over at most, whoever is waited
// for.
//
// Errors: dynamic.ErrPort for a port that is not the root's; ErrCall once the port is
// closed, or in time; coll.ErrRoot; ErrAlone where no other jobs can be met; ErrPeerGone, or
// message.ErrPeerDown, where somebody dies on the way; comm.ErrComm for who connects to a
// port of its own. All members of both sides get an
// error then, of the class that the root's has, and no communicator.
func (c *Comm) Accept(port string, info *Info, root int) (*Comm, error) {
	return outComm(meet.Accept(c.in(), port, info.in(), root))
}

// Connect makes an intercommunicator of c's group and that of those who accept at a
// port, which may be of another job. All members of c, an intracommunicator, call
// it. port and info matter at the root only (MPI_Comm_connect). It waits 60 seconds
// until somebody accepts, and for as long as members of either side take from then on.
// The info key timeout says after how many seconds it is to be over at most, instead.
//
// The errors are those of Accept: ErrCall where nobody listens, or accepts in time.
func (c *Comm) Connect(port string, info *Info, root int) (*Comm, error) {
	return outComm(meet.Connect(c.in(), port, info.in(), root))
}

// MaxServiceName is the most bytes of a service's name.
const MaxServiceName = meet.MaxServiceName

// PublishName has other procs find port by the name of service (MPI_Publish_name): those
// of this job, or of all jobs that share a server for names, as the job file's names
// block says. It blocks until the server has answered.
//
// A service has a name of 1 to MaxServiceName bytes without a zero byte. port is kept as
// it is, up to dynamic.MaxPortName bytes, whether it is a port or not. The name is the
// job's: it ends with it, and only procs of the job can unpublish it.
//
// Info keys: scope, the scope of the name in the place of the job file's, where "job"
// stands for this job alone; timeout, the seconds to wait for the server at most (10).
//
// Errors: ErrService for a name that is published already; ErrNames; ErrNamesDenied;
// ErrArg for a bad service; dynamic.ErrPort for a bad port; ErrInfo, ErrInfoValue;
// ErrAlone where no other procs can be met.
func PublishName(service string, info *Info, port string) error {
	return meet.PublishName(service, info.in(), port)
}

// UnpublishName ends what PublishName began, with the same info keys
// (MPI_Unpublish_name). The port is not looked at. The errors are those of PublishName;
// ErrService if this job has not published the service.
func UnpublishName(service string, info *Info, port string) error {
	return meet.UnpublishName(service, info.in(), port)
}

// LookupName gives the port that was published for a service (MPI_Lookup_name), with
// the info keys of PublishName. It does not wait until somebody publishes it: that is
// ErrName, and one may ask again. The other errors are those of PublishName.
func LookupName(service string, info *Info) (port string, err error) {
	return meet.LookupName(service, info.in())
}

// OpenPort opens a port and gives its name: a line of printable text, which is all
// that somebody needs to connect. It is a capability: who has it gets in. The port
// is the calling proc's, and ends with it (MPI_Open_port).
//
// The info key lifetime says after how many seconds the port closes by itself: who
// calls it then, waits there or accepts there is refused. The key backlog says how
// many who call may wait to be accepted (256); the next one is refused.
func OpenPort(info *Info) (string, error) { return meet.OpenPort(info.in()) }

// ClosePort closes a port. Who waits there, or is to be accepted there, is refused
// (MPI_Close_port). Communicators that were made by it stay.
func ClosePort(name string) error { return meet.ClosePort(name) }

// Parent gives the intercommunicator with those who have spawned this proc's world
// (MPI_Comm_get_parent): its remote group are the members of the communicator that
// they called Spawn on. It is the same at each call, and nil in a proc that nobody has
// spawned, or once it was freed or disconnected.
func Parent() *Comm { return (*Comm)(meet.Parent()) }

// Remains counts what a rank has to do with other worlds, and what it waits for. All
// is 0 once it has left them in order.
type Remains struct {
	Worlds    int // that were met and are remembered
	Guests    int // at the other ends of calls
	Links     int // to procs of other worlds
	Early     int // links from worlds that are not known yet
	Ports     int // that are open
	Questions int // that the node has not answered
	Requests  int // and messages that nobody has received
}

// String names what there is.
func (r Remains) String() string { return meet.Remains(r).String() }

// Command is a program that Spawn starts.
type Command struct {
	Path  string   // a name without a slash is looked up; a relative path starts from the program's folder of the job file
	Args  []string // without the name of the program
	Procs int      // at least 1
	Info  *Info    // nil: none
}

// Spawn starts procs of a program as a world of their own, and makes an
// intercommunicator of c's group and theirs (MPI_Comm_spawn). They find it with Parent.
// All members of c, an intracommunicator, call it; command matters at the root only.
// It blocks until all procs have called Init.
//
// codes has an error class for each of the procs that were asked for: Success for
// those that run. Where the spawn fails none runs: the class is Spawn then for the procs
// that are to blame.
//
// Info keys: host, a site of the job or an address of one of its hosts, where the procs
// are started instead of the root's own; wdir, their working folder; path, folders
// separated by colons where a name without a slash is looked for; arch, the
// architecture that the machine must have; env, lines NAME=value for their
// environment; soft, how many procs will do, as numbers and ranges like 2:8:2,11.
func (c *Comm) Spawn(command Command, root int) (children *Comm, codes []Class, err error) {
	return outCommSClass(meet.Spawn(c.in(), command.in(), root))
}

// SpawnMultiple is Spawn of several programs, whose procs are one world, in the order
// of commands (MPI_Comm_spawn_multiple). The attribute AppNum tells them which one is
// theirs.
func (c *Comm) SpawnMultiple(commands []Command, root int) (children *Comm, codes []Class, err error) {
	return outCommSClass(meet.SpawnMultiple(c.in(), inCommands(commands), root))
}
