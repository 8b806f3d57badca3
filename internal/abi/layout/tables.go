//go:build !386 && !arm

package layout

import (
	"reflect"

	"github.com/openimpi/impi/core/board"
	"github.com/openimpi/impi/core/coll"
	"github.com/openimpi/impi/internal/abi/handles"
	"github.com/openimpi/impi/internal/engine/calls"
	"github.com/openimpi/impi/internal/fastpath"
	"github.com/openimpi/impi/internal/native/shortbox"
	"github.com/openimpi/impi/plugins/sdk/link"
	"github.com/openimpi/impi/plugins/sdk/support/ntcopy"
)

// headers are the files, with what each has under which name in C.
var headers = []header{
	{
		file:  "cmd/libmpi/fastpath_layout.h",
		guard: "IMPI_FAST_PATH_LAYOUT_H",
		about: "The memory that C and Go share (docs/shared-memory.md), as Go defines it. The comments are those of the Go source, with its names: FullAt is full_at here.",
		enums: []enum{ofFastPath, ofLink, ofBoard, {"core/coll", phases("PHASE_")}, {"internal/abi/handles", []constant{
			{"KIND_SHIFT", "KindShift", handles.KindShift}, {"SHIFT", "IndexShift", handles.IndexShift}, {"KIND", "FastPath", int64(handles.FastPath)},
		}}, {"plugins/sdk/support/ntcopy", []constant{{"FAR_LEAST", "Least", ntcopy.Least}}}},
		structs: []structure{
			{"place", reflect.TypeFor[link.FastBoxPage]().Elem()},
			{"carried", reflect.TypeFor[link.CarriedMessage]()},
			{"phase", reflect.TypeFor[link.CarriedOperation]()},
			{"carriers", reflect.TypeFor[link.CarrierCalls]()},
			{"peer", reflect.TypeFor[fastpath.Peer]()},
			{"comm", reflect.TypeFor[fastpath.Comm]()},
			{"request", reflect.TypeFor[fastpath.Request]()},
			{"begun", reflect.TypeFor[fastpath.StartedOps]()},
			{"memory_key", reflect.TypeFor[board.MemoryKey]()},
			{"board", reflect.TypeFor[board.State]()},
			{"target", reflect.TypeFor[fastpath.Target]()},
			{"window", reflect.TypeFor[fastpath.Window]()},
			{"team", reflect.TypeFor[fastpath.NativeComm]()},
			{"moves", reflect.TypeFor[fastpath.NativeTransfers]()},
			{"fastpath", reflect.TypeFor[fastpath.Memory]()},
		},
		declarations: inCalls,
		check:        "cmd/libmpi/fastpath_layout.go",
	},
	{
		file:  "internal/native/carried.h",
		guard: "IMPI_NATIVE_CARRIED_H",
		about: "What cmd/libmpi's C code gives to that of this package (docs/shared-memory.md), as Go defines it.",
		enums: []enum{{"plugins/sdk/link", []constant{
			{"IMPI_SHORT_BOXES", "FastBoxCount", link.FastBoxCount}, {"IMPI_SHORT_LEAST", "MaxCarried", link.MaxCarried},
			{"IMPI_LONG_MOST", "MaxLent", link.MaxLent}, {"IMPI_IS_APART", "FastBoxNowhere", link.FastBoxNowhere},
		}}, {"core/coll", phases("IMPI_NATIVE_")}, {"internal/native/shortbox", []constant{
			{"IMPI_SHORT_PIECES", "Pieces", shortbox.Pieces}, {"IMPI_PIECE_LEAST", "MinPiece", shortbox.MinPiece}, {"IMPI_SHORT_PLACE", "Place", shortbox.Place},
			{"IMPI_SHORT_AREA", "Area", shortbox.Area}, {"IMPI_SHORT_BOX", "Box", int64(shortbox.Box)}, {"IMPI_SHORT_ENVELOPE", "Envelope", shortbox.Envelope},
			{"IMPI_SHORT_LAG", "Lag", shortbox.Lag},
		}}},
		structs: []structure{
			{"impi_short", reflect.TypeFor[link.CarriedMessage]()},
			{"impi_native_phase_args", reflect.TypeFor[link.CarriedOperation]()},
			{"impi_short_boxes", reflect.TypeFor[shortbox.Boxes]()},
		},
		declarations: map[string]string{
			"Boxes.All":   "struct impi_shorts *%s",
			"Boxes.Knows": "uint8_t %s[2]",
			"Boxes.In":    "char %s[IMPI_SHORT_BOXES][IMPI_SHORT_BOX]",
		},
	},
	{
		file:  "cmd/libmpi/measure_layout.h",
		guard: "IMPI_MEASURE_LAYOUT_H",
		about: "The counts and times of calls, which C writes for C programs (docs/shared-memory.md), as Go defines them.",
		enums: []enum{{"internal/engine/calls", []constant{
			{"CALLS", "MaxNumbers", calls.MaxNumbers}, {"NOBODY", "NoPeer", calls.NoPeer}, {"NO_TAG", "NoTag", calls.NoTag},
			{"COUNTED", "CountBit", calls.CountBit}, {"TRACED", "TraceBit", calls.TraceBit}, {"MERGED", "MergeBit", calls.MergeBit},
			{"RING", "RingSize", calls.RingSize}, {"KINDS", "MaxKinds", calls.MaxKinds},
			{"ENOUGH", "MinStreak", calls.MinStreak}, {"STEADY", "LongStreak", calls.LongStreak}, {"AGAIN", "MinStreakAfterPause", calls.MinStreakAfterPause},
			{"STRIDE", "UntimedCalls", calls.UntimedCalls}, {"RUN_MOST", "MaxRunBytes", calls.MaxRunBytes},
			{"SENDS", "Sends", calls.Sends}, {"RECEIVES", "Receives", calls.Receives}, {"TALLIES", "RunKinds", calls.RunKinds},
			{"CALL_SEND", "Send", int64(calls.Send)}, {"CALL_RECV", "Recv", int64(calls.Recv)},
		}}},
		structs: []structure{
			{"sum", reflect.TypeFor[calls.Sum]()},
			{"event", reflect.TypeFor[calls.Event]()},
			{"tally", fieldOf[calls.Run]("tallies").Elem()},
			{"run", reflect.TypeFor[calls.Run]()},
			{"burst", reflect.TypeFor[calls.Burst]()},
			{"measure", reflect.TypeFor[calls.Memory]()},
		},
		declarations: map[string]string{"Run.owner": "_Atomic uintptr_t %s"},
		check:        "cmd/libmpi/measure_layout.go",
	},
}

// fieldOf returns the type of a field, whose own name may be that package's alone.
func fieldOf[T any](name string) reflect.Type {
	f, ok := reflect.TypeFor[T]().FieldByName(name)
	if !ok {
		panic("there is no field " + name)
	}
	return f.Type
}

var ofFastPath = enum{"internal/fastpath", []constant{
	{"PEERS", "Peers", fastpath.Peers}, {"COMMS", "Comms", fastpath.Comms}, {"RANKS", "Ranks", fastpath.Ranks}, {"REQUESTS", "Requests", fastpath.Requests},
	{"MEMBERS", "Members", fastpath.Members}, {"WINDOWS", "Windows", fastpath.Windows}, {"TEAMS", "Teams", fastpath.Teams},

	{"MOST", "MaxBoardPost", fastpath.MaxBoardPost}, {"PAIR_MOST", "MaxBoardPair", fastpath.MaxBoardPair},
	{"ALLREDUCE_MOST", "MaxBoardAllreduce", fastpath.MaxBoardAllreduce}, {"START_MOST", "BoardStartLimit", fastpath.BoardStartLimit},
	{"LEND_BCAST", "BoardLendBcast", fastpath.BoardLendBcast}, {"LEND_MOST", "MaxBoardLend", fastpath.MaxBoardLend},
	{"PIECE", "BoardPiece", fastpath.BoardPiece}, {"FAR_OWN", "BoardStreamingCopy", fastpath.BoardStreamingCopy},
	{"FOUND", "BoardFoundStreak", fastpath.BoardFoundStreak}, {"STREAK", "ReceivesPerLook", fastpath.ReceivesPerLook}, {"SELDOM", "BoardOpsPerLook", fastpath.BoardOpsPerLook},
	{"TEAM_MOST", "MaxNative", fastpath.MaxNative}, {"TEAM_SELDOM", "NativeOpsPerLook", fastpath.NativeOpsPerLook},
	{"WINDOW_MOST", "MaxWindow", fastpath.MaxWindow}, {"WINDOW_SELDOM", "FlushesPerLook", fastpath.FlushesPerLook},

	{"BARRIER", "BoardBarrier", fastpath.BoardBarrier}, {"BCAST", "BoardBcast", fastpath.BoardBcast}, {"GATHER", "BoardGather", fastpath.BoardGather},
	{"SCATTER", "BoardScatter", fastpath.BoardScatter}, {"ALLGATHER", "BoardAllgather", fastpath.BoardAllgather}, {"ALLTOALL", "BoardAlltoall", fastpath.BoardAlltoall},
	{"REDUCE", "BoardReduce", fastpath.BoardReduce}, {"ALLREDUCE", "BoardAllreduce", fastpath.BoardAllreduce},
	{"REDUCE_SCATTER_BLOCK", "BoardReduceScatterBlock", fastpath.BoardReduceScatterBlock},

	{"OPEN", "Open", fastpath.Open}, {"INSIDE", "Inside", fastpath.Inside}, {"CLOSED", "Closed", fastpath.Closed},
	{"FREE", "Free", fastpath.Free}, {"POSTED", "Posted", fastpath.Posted}, {"DONE", "Done", fastpath.Done}, {"ADOPTED", "Adopted", fastpath.Adopted}, {"MOVING", "Moving", fastpath.Moving},
	{"NONE", "None", fastpath.None}, {"EVERY", "AnySource", fastpath.AnySource}, {"ON_BOARD", "OnBoard", fastpath.OnBoard},

	{"SUM", "Sum", fastpath.Sum}, {"PROD", "Prod", fastpath.Prod}, {"MAX", "Max", fastpath.Max}, {"MIN", "Min", fastpath.Min}, {"LAND", "LAnd", fastpath.LAnd},
	{"LOR", "LOr", fastpath.LOr}, {"LXOR", "LXor", fastpath.LXor}, {"BAND", "BAnd", fastpath.BAnd}, {"BOR", "BOr", fastpath.BOr}, {"BXOR", "BXor", fastpath.BXor}, {"OPS", "Ops", fastpath.Ops},
}}

var ofLink = enum{"plugins/sdk/link", []constant{
	{"FASTBOXES", "FastBoxCount", link.FastBoxCount}, {"IN_FASTBOX", "InFastBox", link.InFastBox}, {"MAX_FASTBOX", "MaxFastBox", link.MaxFastBox},
	{"ENVELOPE_COST", "EnvelopeCost", link.EnvelopeCost}, {"FASTBOX_LAG", "FastBoxLag", link.FastBoxLag}, {"FASTBOX_OWED", "FastBoxOwed", link.FastBoxOwed}, {"FASTBOX_SHARE", "FastBoxShare", link.FastBoxShare},
	{"FASTBOX_ALIGN", "FastBoxAlign", link.FastBoxAlign}, {"FASTBOX_PIECE", "FastBoxPiece", link.FastBoxPiece}, {"NOWHERE", "FastBoxNowhere", link.FastBoxNowhere},
	{"CARRIED_MOST", "MaxCarried", link.MaxCarried}, {"LONG_MOST", "MaxLent", link.MaxLent},
}}

var ofBoard = enum{"core/board", []constant{
	{"SLOTS", "Slots", board.Slots},
	{"STEP_BITS", "StepBits", board.StepBits}, {"READ", "DoneBit", board.DoneBit}, {"ASKED_AT", "AskedAt", board.AskedAt}, {"SLOT_HEAD", "SlotHead", board.SlotHead},
	{"MEMBER", "MemberSize", board.MemberSize}, {"ENTRIES_AT", "EntriesAt", board.EntriesAt}, {"ENTRY", "EntrySize", board.EntrySize}, {"ENTRIES", "Entries", board.Entries},
	{"INLINE", "Inline", board.Inline}, {"ROOM", "RoomSize", board.RoomSize}, {"HALF", "HalfSize", board.HalfSize}, {"AREA", "AreaSize", board.AreaSize},
	{"LENT", "LentBit", board.LentBit}, {"LEND_SIZE", "LendSize", board.LendSize},
}}

// phases are the collective operations of the site's own MPI, with a prefix in C.
func phases(prefix string) []constant {
	return []constant{
		{prefix + "BARRIER", "PhaseBarrier", int64(coll.PhaseBarrier)}, {prefix + "BCAST", "PhaseBcast", int64(coll.PhaseBcast)},
		{prefix + "REDUCE", "PhaseReduce", int64(coll.PhaseReduce)}, {prefix + "ALLREDUCE", "PhaseAllreduce", int64(coll.PhaseAllreduce)},
		{prefix + "GATHER", "PhaseGather", int64(coll.PhaseGather)}, {prefix + "ALLGATHER", "PhaseAllgather", int64(coll.PhaseAllgather)},
		{prefix + "ALLTOALL", "PhaseAlltoall", int64(coll.PhaseAlltoall)},
	}
}

// flat are the fields that are structs in Go and no struct of their own in C. Those that are
// embedded are so, too.
var flat = map[string]bool{"fastBox.message": true, "Memory.Traced": true}

// inCalls are the declarations of fields whose type in C does not follow from that in Go.
var inCalls = map[string]string{
	"State.Slot":         "char *%s",
	"State.Areas":        "char *%s",
	"Target.Base":        "char *%s",
	"Request.Send":       "const void *%s",
	"CarrierCalls.Pump":  "int (*%s)(void *all, int most)",
	"CarrierCalls.Put":   "int (*%s)(void *carrier, const struct carried *, uintptr_t data)",
	"CarrierCalls.Took":  "void (*%s)(void *carrier, uint64_t taken)",
	"CarrierCalls.Lend":  "int (*%s)(void *carrier, const struct carried *, uintptr_t data, int32_t *number)",
	"CarrierCalls.Fetch": "int (*%s)(void *carrier, void *to, uint64_t bytes, int32_t *number)",
	"CarrierCalls.Begin": "int (*%s)(void *library, const struct phase *, int32_t *number)",
	"CarrierCalls.Test":  "int (*%s)(void *library, int32_t number)",

	"CarriedOperation.In":  "const void *%s",
	"CarriedOperation.Out": "void *%s",
}
