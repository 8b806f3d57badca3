package fileview

// Source is data for a file, from one of the procs that write together: Data has the bytes of the
// runs, one after the other, from the cursor's place on.
type Source struct {
	Cursor
	Data []byte
}

// Fill copies the sources' bytes for the part of a file that begins at lo to buf, which is as long
// as the part, and returns the holes, where no source has bytes, appended to holes. The sources
// advance past the part. Where they overlap, any one wins.
func Fill(buf []byte, lo int64, from []*Source, holes []Extent) []Extent {
	hi, at := lo+int64(len(buf)), lo
	h := make(heap, 0, len(from))
	for _, s := range from {
		if s.Len > 0 && s.Off < hi {
			h = append(h, s)
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	for len(h) > 0 {
		s := h[0]
		other := h.second(hi)
		for s.Off <= other && s.Off < hi && s.Len > 0 {
			n := min(s.Len, hi-s.Off)
			if s.Off > at {
				holes = append(holes, Extent{at, s.Off - at})
			}
			copy(buf[s.Off-lo:], s.Data[:n])
			s.Data = s.Data[n:]
			at = max(at, s.Off+n)
			s.Take(n)
		}
		if s.Len == 0 || s.Off >= hi {
			h[0] = h[len(h)-1]
			h = h[:len(h)-1]
		}
		h.down(0)
	}
	if at < hi {
		holes = append(holes, Extent{at, hi - at})
	}
	return holes
}

// heap has sources; none begins before the first one.
type heap []*Source

func (h heap) down(i int) {
	for {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if r := least + 1; r < len(h) && h[r].Off < h[least].Off {
			least = r
		}
		if h[i].Off <= h[least].Off {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// second returns where the source begins that follows the first one, or hi.
func (h heap) second(hi int64) int64 {
	for _, s := range h[1:min(3, len(h))] {
		hi = min(hi, s.Off)
	}
	return hi
}

// GatherRuns copies the bytes of buf that are in the runs from the cursor on to dst; buf is the
// part of a file that begins at lo. It stops when one of them is at its end, and returns the number
// of bytes copied.
func GatherRuns(dst, buf []byte, lo int64, c *Cursor) (picked int64) {
	return move(dst, buf, lo, c, false)
}

// ScatterRuns is the inverse of GatherRuns: it copies src to buf.
func ScatterRuns(src, buf []byte, lo int64, c *Cursor) (put int64) {
	return move(src, buf, lo, c, true)
}

// move does GatherRuns, or ScatterRuns if put is set.
func move(data, buf []byte, lo int64, c *Cursor, put bool) (moved int64) {
	hi := lo + int64(len(buf))
	for c.Len > 0 && c.Off < hi {
		n := c.Len
		if whole := c.whole(hi, int64(len(data))); whole > 1 {
			at, stride := c.Off-lo, c.stride
			for range whole {
				if place := buf[at : at+n]; put {
					copy(place, data)
				} else {
					copy(data, place)
				}
				data, at = data[n:], at+stride
			}
			moved += whole * n
			c.skip(whole)
			continue
		}
		if n = min(n, hi-c.Off, int64(len(data))); n == 0 {
			break
		}
		if place := buf[c.Off-lo : c.Off-lo+n]; put {
			copy(place, data)
		} else {
			copy(data, place)
		}
		data, moved = data[n:], moved+n
		c.Take(n)
	}
	return moved
}

// Union returns the runs of bytes between lo and hi that are in any of the lists, joined where
// they touch or overlap.
func Union(lists []List, lo, hi int64) (covered List) {
	h := make(heap, 0, len(lists))
	for i := range lists {
		part := lists[i].Between(lo, hi)
		if part.Len() > 0 {
			h = append(h, &Source{Cursor: part.Cursor()})
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
	var run Extent
	for len(h) > 0 {
		s := h[0]
		if s.Off > run.Off+run.Len {
			if run.Len > 0 {
				covered.Add(Series{run.Off, run.Len, run.Len, 1})
			}
			run = s.Extent
		}
		run.Len = max(run.Len, s.Off+s.Len-run.Off)
		s.Take(s.Len)
		if s.Len == 0 {
			h[0] = h[len(h)-1]
			h = h[:len(h)-1]
		}
		h.down(0)
	}
	if run.Len > 0 {
		covered.Add(Series{run.Off, run.Len, run.Len, 1})
	}
	return covered
}

// Domains divides the bytes between lo and hi of a file into parts, one for each of n procs that
// read or write them, and returns the ends of the parts: part i is between ends i and i+1. All
// inner ones are multiples of align, such as the size of stripes or pages, so that no two parts
// touch the same one.
func Domains(lo, hi int64, n int, align int64) []int64 {
	ends := make([]int64, n+1)
	first := lo / align
	units := (hi+align-1)/align - first
	for i := range ends {
		at := (first + units*int64(i)/int64(n)) * align
		ends[i] = min(max(at, lo), hi)
	}
	ends[0], ends[n] = lo, hi
	return ends
}
