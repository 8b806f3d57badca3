package mpierr

import (
	"github.com/openimpi/impi/core/agent"
	"github.com/openimpi/impi/core/agree"
	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/core/comm"
	"github.com/openimpi/impi/core/compress"
	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/flow"
	"github.com/openimpi/impi/core/membership"
	"github.com/openimpi/impi/core/message"
	"github.com/openimpi/impi/core/names"
	"github.com/openimpi/impi/core/resume"
	"github.com/openimpi/impi/core/rma"
	"github.com/openimpi/impi/core/startup"
	"github.com/openimpi/impi/core/wire"
	"github.com/openimpi/impi/plugins/sdk/link"
)

// table has every sentinel of core. An error may wrap several; the first row counts, so
// what a user did comes before its consequences, and those before how they were noticed.
var table = []Row{
	{message.ErrTruncate, Truncate},
	{message.ErrBuffer, Buffer},
	{message.ErrMemory, Buffer},

	{datatype.ErrOp, Op},
	{datatype.ErrKind, Type},
	{datatype.ErrBuffer, Buffer},
	{datatype.ErrAlign, Buffer},
	{datatype.ErrRepresentation, UnsupportedDatarep},
	{datatype.ErrType, Type},
	{datatype.ErrCount, Count},
	{datatype.ErrArg, Arg},
	{datatype.ErrTooLarge, ValueTooLarge},
	{datatype.ErrTruncate, Truncate},
	{datatype.ErrEncoding, Other},

	{comm.ErrComm, Comm},
	{comm.ErrGroup, Group},
	{comm.ErrRank, Rank},
	{comm.ErrRange, Arg},
	{comm.ErrDims, Dims},
	{comm.ErrTopology, Topology},
	{comm.ErrGraph, Arg},
	{comm.ErrKeyval, Keyval},
	{comm.ErrKeyvals, Other},
	{comm.ErrContexts, Other},
	{comm.ErrContextRace, Intern},
	{comm.ErrMessage, Other},

	{coll.ErrRoot, Root},
	{coll.ErrCount, Count},
	{coll.ErrBuffer, Buffer},
	{coll.ErrMismatch, NotSame},

	{rma.ErrWin, Win},
	{rma.ErrSync, RMASync},
	{rma.ErrConflict, RMAConflict},
	{rma.ErrRange, RMARange},
	{rma.ErrAttach, RMAAttach},
	{rma.ErrShared, RMAShared},
	{rma.ErrFlavor, RMAFlavor},
	{rma.ErrBase, Base},
	{rma.ErrSize, Size},
	{rma.ErrDisp, Disp},
	{rma.ErrAssert, Assert},
	{rma.ErrLockType, LockType},

	{agree.ErrConfig, Intern},
	{agree.ErrRank, Intern},
	{agree.ErrMany, Intern},
	{agree.ErrMessage, Other},
	{agree.ErrTwice, Other},
	{agree.ErrUnasked, Other},
	{agree.ErrExcluded, Other},
	{agree.ErrDiffers, Other},

	{message.ErrPeerDown, ProcAborted},
	{message.ErrProtocol, Other},
	{message.ErrConfig, Intern},
	{flow.ErrLimits, Intern},

	{rma.ErrHeader, Other},

	{dynamic.ErrCard, Port},
	{dynamic.ErrCardVersion, Port},
	{dynamic.ErrPort, Port},
	{dynamic.ErrPortOpen, Port},
	{dynamic.ErrTooManyPorts, Port},
	{dynamic.ErrPortNotOpen, Port},
	{dynamic.ErrPortClosed, Port},
	{dynamic.ErrPortExpired, Port},
	{dynamic.ErrAcceptDropped, Port},
	{dynamic.ErrTooManyWait, Port},
	{names.ErrPublished, Service},
	{names.ErrUnknown, Service},
	{names.ErrFull, Service},
	{names.ErrNotFound, Name},
	{names.ErrScope, InfoValue},
	{names.ErrName, Arg},
	{dynamic.ErrDescription, Other},
	{board.ErrBoard, Other},
	{dynamic.ErrGreeting, Other},
	{dynamic.ErrToken, Other},
	{dynamic.ErrJob, Other},

	{membership.ErrUnknownHost, Other},
	{membership.ErrTwice, Other},
	{membership.ErrPart, Other},
	{membership.ErrSilent, Other},
	{membership.ErrMissing, Other},
	{membership.ErrCount, Other},
	{startup.ErrConfig, Other},
	{startup.ErrTimeout, Other},
	{startup.ErrAuth, Other},
	{startup.ErrRank, Other},
	{startup.ErrFull, Other},
	{startup.ErrProtocol, Other},
	{startup.ErrTooLong, Other},
	{startup.ErrValue, Other},
	{startup.ErrDisagree, Other},
	{startup.ErrLost, Other},
	{startup.ErrFailed, Other},
	{startup.ErrBusy, Other},
	{startup.ErrLeft, Other},
	{startup.ErrMoved, Other},
	{startup.ErrMet, Other},
	{startup.ErrSpares, Other},
	{startup.ErrSpareForeign, Other},

	{agent.ErrConfig, Intern},
	{agent.ErrLink, Intern},
	{agent.ErrMissing, Other},
	{agent.ErrUnreached, Other},
	{agent.ErrNoQuestion, Other},
	{agent.ErrAskUnknown, Other},
	{agent.ErrAskClosed, Other},
	{agent.ErrAskBusy, Other},
	{agent.ErrGreeting, Other},
	{agent.ErrEarly, Other},
	{agent.ErrProtocol, Other},
	{agent.ErrTruncated, Other},

	{compress.ErrFrame, Other},
	{resume.ErrVersion, Other},
	{resume.ErrFrame, Other},
	{resume.ErrSequence, Other},
	{resume.ErrAck, Other},
	{resume.ErrWindow, Other},
	{resume.ErrChecksum, Other},
	{resume.ErrSession, Other},
	{resume.ErrStale, Other},
	{resume.ErrGone, Other},
	{resume.ErrNotResumed, Other},

	{wire.ErrShort, Other},
	{wire.ErrLong, Other},

	{link.ErrSilent, Other},
	{link.ErrBroken, Other},
	{link.ErrClosed, Intern},
}
