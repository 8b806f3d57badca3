// Command wordcount counts the words of a text. Rank 0 splits it at word
// boundaries and scatters it; each rank counts its part. Numbers that everybody
// has, such as how often each letter occurs, are reduced; the words, which differ
// from part to part, are gathered and merged.
package main

import (
	"errors"
	"flag"
	"fmt"

	"github.com/openimpi/impi/core/mpi"
)

var errDiffers = errors.New("the count differs from a sequential one")

func main() {
	file := flag.String("text", "", "the `file` to count, plain or .gz (default: two books)")
	top := flag.Int("top", 10, "how many of the most frequent words to print")
	repeat := flag.Int("repeat", 1, "count the text so many `times`, at least once, each time from the start")
	progress := flag.Int("progress", 0, "say how far it is every so many `times` (default: never)")
	flag.Parse()
	*repeat = max(*repeat, 1)
	if err := run(*file, *top, *repeat, *progress); err != nil {
		mpi.Abort(1, "wordcount: "+err.Error())
	}
}

func run(file string, top, repeat, progress int) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	world := mpi.World()
	var text []byte
	var alone *tally // counts of one process
	if world.Rank() == 0 {
		var err error
		if text, err = load(file); err != nil {
			return err
		}
		alone = count(text)
	}
	for n := 1; n <= repeat; n++ {
		all, err := together(world, text, alone)
		switch {
		case err != nil:
			return err
		case world.Rank() != 0:
			continue
		case progress > 0 && n%progress == 0:
			fmt.Printf("wordcount: counted %d times of %d\n", n, repeat)
		}
		if n == repeat {
			report(all, len(text), world.Size(), top)
		}
	}
	return mpi.Finalize()
}

// together counts the text on all ranks and compares the result with alone. Only rank 0 has
// text and alone, and gets the result.
func together(c *mpi.Comm, text []byte, alone *tally) (*tally, error) {
	part, err := scatter(c, text)
	if err != nil {
		return nil, err
	}
	all, err := merge(c, count(part))
	if err != nil || c.Rank() != 0 {
		return nil, err
	}
	if d := all.difference(alone); d != "" {
		return nil, fmt.Errorf("%w: %s", errDiffers, d)
	}
	return all, nil
}

// scatter gives each rank its part of the text, which only rank 0 has.
func scatter(c *mpi.Comm, text []byte) ([]byte, error) {
	var sizes []int64
	var counts []int
	if c.Rank() == 0 {
		for _, part := range split(text, c.Size()) {
			sizes, counts = append(sizes, int64(len(part))), append(counts, len(part))
		}
	}
	size := make([]int64, 1)
	if err := mpi.Scatter(c, sizes, size, 0); err != nil {
		return nil, err
	}
	part := make([]byte, size[0])
	return part, mpi.Scatterv(c, text, counts, nil, part, 0)
}

// merge adds all tallies up at rank 0; elsewhere the result means nothing.
func merge(c *mpi.Comm, own *tally) (*tally, error) {
	all := newTally()
	if err := mpi.Reduce(c, own.numbers[:], all.numbers[:], mpi.Sum, 0); err != nil {
		return nil, err
	}
	words := own.encode()
	sizes := make([]int64, c.Size())
	if err := mpi.Gather(c, []int64{int64(len(words))}, sizes, 0); err != nil {
		return nil, err
	}
	if c.Rank() != 0 {
		return all, mpi.Gatherv(c, words, nil, nil, nil, 0)
	}
	counts, total := make([]int, c.Size()), 0
	for rank, n := range sizes {
		counts[rank] = int(n)
		total += int(n)
	}
	gathered := make([]byte, total)
	if err := mpi.Gatherv(c, words, gathered, counts, nil, 0); err != nil {
		return nil, err
	}
	return all, all.decode(gathered)
}

func report(t *tally, bytes, ranks, top int) {
	fmt.Printf("wordcount: %d bytes on %d ranks: %d words, %d different, %.2f letters long\n", bytes, ranks, t.total(), len(t.words), t.meanLength())
	for i, e := range t.top(top) {
		fmt.Printf("wordcount: %2d. %-12s %d\n", i+1, e.word, e.count)
	}
	fmt.Printf("wordcount: letters by frequency: %s\n", t.letters())
	fmt.Println("wordcount: equal to a sequential count")
}
