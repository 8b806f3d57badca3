package examples

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"
)

func TestManagerWorker(t *testing.T) {
	printed(t, runJob(t, "manager-worker"), `manager-worker: 400 rows from 4 workers, 182 of 1000 pixels black, symmetric as it must be`)
	f, err := os.Open(filepath.Join(checkout, "bin", "mandelbrot.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil || picture.Bounds().Dx() != 400 || picture.Bounds().Dy() != 400 {
		t.Error(picture, err)
	}
}

func TestManagerWorkerOnOneSite(t *testing.T) {
	printed(t, succeed(t, "-n", "2", "--", "bin/manager-worker", "-size", "51", "-workers", "3"), `manager-worker: 51 rows from 3 workers, .* symmetric as it must be`)
}

func TestElastic(t *testing.T) {
	printed(t, runJob(t, "elastic"),
		`elastic: block 0: 2262 primes, counted by 2 ranks`,
		`elastic: block 2: [0-9]+ primes, counted by 6 ranks`,
		`elastic: block 3: [0-9]+ primes, counted by 3 ranks`,
		`elastic: 11301 primes below 120000, counted by teams of \[2 4 6 3 5 2\] ranks, as it must be`)
}
