// Command bcastinput has rank 0 read its standard input and broadcast it.
package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/openimpi/impi/core/mpi"
)

var errDiffers = errors.New("not everybody has what was read")

const most = 1 << 20

func main() {
	if err := run(); err != nil {
		mpi.Abort(1, "bcastinput: "+err.Error())
	}
}

func run() error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	text, err := input(world)
	if err != nil {
		return err
	}
	sums := make([]uint32, world.Size())
	if err := mpi.Gather(world, []uint32{crc32.ChecksumIEEE(text)}, sums, 0); err != nil {
		return err
	}
	if world.Rank() == 0 {
		for r, s := range sums {
			if s != sums[0] {
				return fmt.Errorf("%w: the text of rank %d has checksum %08x, that of rank 0 has %08x", errDiffers, r, s, sums[0])
			}
		}
		fmt.Printf("bcastinput: %d bytes on %d ranks, checksum %08x\n", len(text), len(sums), sums[0])
	}
	return mpi.Finalize()
}

// input returns what rank 0 reads, on all ranks: rank 0 broadcasts the length, then the
// text.
func input(c *mpi.Comm) ([]byte, error) {
	var text []byte
	length := []int{0}
	if c.Rank() == 0 {
		var err error
		if text, err = io.ReadAll(io.LimitReader(os.Stdin, most)); err != nil {
			return nil, err
		}
		length[0] = len(text)
	}
	if err := mpi.Bcast(c, length, 0); err != nil {
		return nil, err
	}
	if c.Rank() != 0 {
		text = make([]byte, length[0])
	}
	return text, mpi.Bcast(c, text, 0)
}
