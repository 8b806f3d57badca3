package window

import (
	"unsafe"

	"github.com/openimpi/impi/core/datatype"
	"github.com/openimpi/impi/internal/engine/collective"
	"github.com/openimpi/impi/internal/engine/proc"
)

func Put[T proc.Type](w *Win, buf []T, rank int, disp int64) error {
	return w.Origin().Put(proc.Of(buf), ElementsAt(buf, rank, disp))
}

func Get[T proc.Type](w *Win, buf []T, rank int, disp int64) error {
	return w.Origin().Get(proc.Of(buf), ElementsAt(buf, rank, disp))
}

func Accumulate[T proc.Type](w *Win, buf []T, rank int, disp int64, op collective.Op) error {
	return w.Origin().Accumulate(proc.Of(buf), ElementsAt(buf, rank, disp), op)
}

func GetAccumulate[T proc.Type](w *Win, buf, result []T, rank int, disp int64, op collective.Op) error {
	return w.Origin().GetAccumulate(proc.Of(buf), proc.Of(result), ElementsAt(result, rank, disp), op)
}

func FetchAndOp[T proc.Type](w *Win, value T, result *T, rank int, disp int64, op collective.Op) error {
	return w.Origin().FetchAndOp(proc.Of([]T{value}), one(result), rank, disp, op)
}

func CompareAndSwap[T proc.Type](w *Win, value, compare T, result *T, rank int, disp int64) error {
	return w.Origin().CompareAndSwap(proc.Of([]T{value}), proc.Of([]T{compare}), one(result), rank, disp)
}

// one is a Buffer of a single element; nil is no memory.
func one[T proc.Type](x *T) proc.Buffer {
	if x == nil {
		return proc.At(nil, 1, datatype.Basic(datatype.KindOf[T]()))
	}
	return proc.Of(unsafe.Slice(x, 1))
}

// ElementsAt is where as many elements as buf has lie in the window of a rank.
func ElementsAt[T proc.Type](buf []T, rank int, disp int64) Target {
	return Target{rank, disp, len(buf), datatype.Basic(datatype.KindOf[T]())}
}
