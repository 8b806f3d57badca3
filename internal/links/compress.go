package links

import (
	"fmt"
	"io"

	"github.com/openimpi/impi/internal/quantity"
	"github.com/openimpi/impi/internal/wireup"
)

// CompressionText describes how many bytes have travelled for a number of bytes, and how many were
// saved. More may have travelled: short messages have headers of their own.
func CompressionText(bytes, travelled uint64) string {
	if bytes == 0 {
		return "nothing yet"
	}
	s := fmt.Sprintf("%s went as %s", quantity.Bytes(bytes), quantity.Bytes(travelled))
	if travelled > bytes {
		return s + fmt.Sprintf(" (%s more)", quantity.Bytes(travelled-bytes))
	}
	return s + fmt.Sprintf(" (%.1f to 1, %s saved)", float64(bytes)/float64(max(1, travelled)), quantity.Bytes(bytes-travelled))
}

func (p *Pair) compression(w io.Writer) {
	for i, v := range p.Views {
		switch {
		case v.Rounds && i == 0:
			fmt.Fprintf(w, "    doubles in messages travel as floats\n")
		case v.Exact != "":
			fmt.Fprintf(w, "    doubles do not travel as floats from rank %d: %s\n", v.Local, v.Exact)
		}
	}
	for _, v := range p.Views {
		switch {
		case v.Compress == "" && v.NoCompress != "":
			fmt.Fprintf(w, "    not compressed by rank %d: %s\n", v.Local, v.NoCompress)
		case v.Compress == "":
		case v.Traffic == nil || v.Traffic.Compressed == nil:
			fmt.Fprintf(w, "    compressed by rank %d: %s\n", v.Local, v.Compress)
		default:
			fmt.Fprintf(w, "    compressed by rank %d: %s; %s\n", v.Local, v.Compress, CompressionText(v.Traffic.Compressed.Sent, v.Traffic.Compressed.SentCompressed))
		}
	}
}

// CompressedBytesOf adds up what compressed links and channels of a job have moved, as reported by
// all ends that are known. It returns nil if there are none.
func CompressedBytesOf(j *Job) (sum *wireup.CompressedBytes) {
	add := func(x *wireup.CompressedBytes) {
		if x == nil {
			return
		}
		if sum == nil {
			sum = &wireup.CompressedBytes{}
		}
		sum.Add(x)
	}
	for i := range j.ByHost {
		add(j.ByHost[i].Compressed)
	}
	for i := range j.Channels {
		add(j.Channels[i].Compressed)
	}
	for i := range j.Pairs {
		for _, v := range j.Pairs[i].Views {
			if v.Traffic != nil && len(j.ByHost) == 0 { // ByHost has all pairs
				add(v.Traffic.Compressed)
			}
		}
	}
	return sum
}
