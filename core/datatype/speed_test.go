package datatype

import (
	"testing"
	"unsafe"
)

// regular are types that programs send often.
func regular() map[string]*Type {
	d := Basic(Float64)
	disps := make([]int64, 4096)
	for i := range disps {
		disps[i] = int64(i*2 + i%7)
	}
	pair := must(Struct([]int64{1, 1}, []int64{0, 8}, []*Type{Basic(Int32), d}))
	all := map[string]*Type{
		"runs of 4":       must(Vector(8192, 1, 2, Basic(Float32))),
		"runs of 8":       must(Vector(4096, 1, 2, d)),
		"runs of 16":      must(Vector(2048, 2, 4, d)),
		"runs of 24":      must(Vector(1365, 3, 5, d)),
		"runs of 512":     must(Vector(64, 64, 100, d)),
		"indexed 8":       must(IndexedBlock(1, disps, d)),
		"struct 12 of 16": must(Contiguous(2730, pair)),
		"contiguous":      must(Contiguous(4096, d)),
		"cube":            must(Subarray([]int64{24, 24, 24}, []int64{16, 16, 16}, []int64{4, 4, 4}, OrderC, d)),
	}
	for _, t := range all {
		if err := t.Commit(); err != nil {
			panic(err)
		}
	}
	return all
}

func TestPackAllocates(t *testing.T) {
	mem := make([]uint64, 1<<16)
	base := unsafe.Pointer(&mem[0])
	buf := make([]byte, 1<<16)
	for name, typ := range regular() {
		for r := range representations {
			var carry Carry
			if n := testing.AllocsPerRun(20, func() {
				for off := int64(0); ; {
					n := typ.Encode(r, buf[:1001], base, 2, off)
					if n == 0 {
						break
					}
					typ.Decode(r, base, 2, off, buf[:n], &carry)
					off += int64(n)
				}
				typ.Unpack(base, 1, 0, buf[:typ.Pack(buf, base, 1, 0)])
			}); n > 0 {
				t.Errorf("%s in %v allocates %v times", name, r, n)
			}
		}
	}
}

func BenchmarkPack(b *testing.B) {
	mem := make([]uint64, 1<<16)
	base := unsafe.Pointer(&mem[0])
	for name, typ := range regular() {
		buf := make([]byte, typ.Packed(Native))
		b.Run("pack/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				typ.Pack(buf, base, 1, 0)
			}
		})
		b.Run("unpack/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				typ.Unpack(base, 1, 0, buf)
			}
		})
		b.Run("encode/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(buf)))
			for b.Loop() {
				typ.Encode(External32, buf, base, 1, 0)
			}
		})
	}
}

// BenchmarkMemory is what packing is held to: a loop that moves one word at a time.
func BenchmarkMemory(b *testing.B) {
	mem, buf := make([]uint64, 1<<16), make([]uint64, 4096)
	b.Run("words", func(b *testing.B) {
		b.SetBytes(8 * 4096)
		for b.Loop() {
			for i := range buf {
				buf[i] = mem[2*i]
			}
		}
	})
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(8 * 4096)
		for b.Loop() {
			copy(buf, mem)
		}
	})
}
