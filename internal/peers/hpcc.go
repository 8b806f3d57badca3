package peers

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// hpcc is the HPC Challenge: seven benchmarks that check their results, HPL among
// them. It is a C program that nobody here wrote. The tests compile it with our
// library.
var hpcc = origin{
	"HPC Challenge", "hpcc", "hpcc_1.5.0.orig.tar.gz",
	"0a6fef7ab9f3347e549fed65ebb98234feea9ee18aea0c8f59baefbe3cf7ffb8",
}

// FetchHPCC gets the source of the HPC Challenge, unless it is there, and says on out
// what it does.
func FetchHPCC(ctx context.Context, out io.Writer) error {
	dir, err := Dir()
	if err != nil {
		return err
	}
	b := &builder{dir: dir, out: out, log: io.Discard, began: time.Now()}
	if _, err := FindHPCC(); err == nil {
		b.say("the HPC Challenge is in %s", filepath.Join(dir, hpcc.archive))
		return nil
	}
	if err := b.tools(); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("peers: %w; set %s to another folder", err, DirVariable)
	}
	unlock, err := lock(ctx, dir, func() { b.say("waiting for another one that is building in %s", dir) })
	if err != nil {
		return fmt.Errorf("peers: %w", err)
	}
	defer unlock()
	if err := b.fetch(ctx, hpcc); err != nil {
		return fmt.Errorf("peers: HPC Challenge: %w", err)
	}
	return nil
}

// FindHPCC gives the archive that FetchHPCC has fetched. The error wraps ErrMissing if
// it is not there.
func FindHPCC() (archive string, err error) {
	dir, err := Dir()
	if err != nil {
		return "", err
	}
	archive = filepath.Join(dir, hpcc.archive)
	if err := hpcc.checkSum(archive); err != nil {
		return "", fmt.Errorf("HPC Challenge: %w (%w)", ErrMissing, err)
	}
	return archive, nil
}
