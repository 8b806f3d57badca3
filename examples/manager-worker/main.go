// Command manager-worker draws the Mandelbrot set. The manager spawns workers at the sites
// that it is told, hands out the rows one by one, so that slow workers delay nobody, and
// writes a picture. The workers run the same program: a proc with parents is a worker.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"strings"

	"github.com/openimpi/impi/core/mpi"
)

var errPicture = errors.New("the picture is not symmetric")

// The messages: a worker sends a row with its number; the manager answers with the number
// of the next one. A worker's first message has noRow, and so has the last answer.
const (
	tagRow  = 1
	tagNext = 2
	noRow   = -1
)

// size is the width and height of the picture, which all procs have to know.
var size = flag.Int("size", 400, "width and height of the picture, in pixels")

func main() {
	sites := flag.String("sites", "localhost", "where to spawn workers, separated by commas")
	each := flag.Int("workers", 2, "how many, at each of them")
	file := flag.String("png", "", "file for the picture; empty: none")
	flag.Parse()
	if err := run(strings.Split(*sites, ","), *each, *file); err != nil {
		mpi.Abort(1, "manager-worker: "+err.Error())
	}
}

func run(sites []string, each int, file string) error {
	if err := mpi.Init(); err != nil {
		return err
	}
	if parent := mpi.Parent(); parent != nil {
		return errors.Join(work(parent), parent.Disconnect(), mpi.Finalize())
	}
	workers, err := hire(sites, each)
	if err != nil {
		return err
	}
	var picture *image.Gray
	if mpi.World().Rank() == 0 {
		if picture, err = manage(workers); err != nil {
			return err
		}
	}
	if err := workers.Disconnect(); err != nil {
		return err
	}
	if picture != nil {
		if err := show(picture, file, len(sites)*each); err != nil {
			return err
		}
	}
	return mpi.Finalize()
}

// hire spawns the workers: one world of them all.
func hire(sites []string, each int) (*mpi.Comm, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var commands []mpi.Command
	for _, site := range sites {
		info := mpi.NewInfo()
		if err := info.Set("host", site); err != nil {
			return nil, err
		}
		commands = append(commands, mpi.Command{Path: self, Args: []string{"-size", fmt.Sprint(*size)}, Procs: each, Info: info})
	}
	workers, _, err := mpi.World().SpawnMultiple(commands, 0)
	return workers, err
}

// manage hands out the rows and collects them. A worker has at most one.
func manage(workers *mpi.Comm) (*image.Gray, error) {
	picture := image.NewGray(image.Rect(0, 0, *size, *size))
	busy, err := workers.RemoteSize()
	row := make([]int32, 1+*size)
	for next := 0; err == nil && busy > 0; next++ {
		var s mpi.Status
		if s, err = mpi.Recv(workers, row, mpi.AnySource, tagRow); err != nil {
			break
		}
		if y := int(row[0]); y != noRow {
			for x, n := range row[1:] {
				picture.SetGray(x, y, color.Gray{Y: uint8(255 - 8*n)})
			}
		}
		answer := []int32{int32(next)}
		if next >= *size {
			answer[0] = noRow
			busy--
		}
		err = mpi.Send(workers, answer, s.Source, tagNext)
	}
	return picture, err
}

func work(manager *mpi.Comm) error {
	row := make([]int32, 1+*size)
	for row[0] = noRow; ; {
		if err := mpi.Send(manager, row, 0, tagRow); err != nil {
			return err
		}
		if _, err := mpi.Recv(manager, row[:1], 0, tagNext); err != nil {
			return err
		}
		if row[0] == noRow {
			return nil
		}
		for x := range row[1:] {
			row[1+x] = steps(coordinate(x)-0.7, coordinate(int(row[0])))
		}
	}
}

// coordinate is that of a pixel's middle, from -1.5 to 1.5.
func coordinate(pixel int) float64 { return 3*(float64(pixel)+0.5)/float64(*size) - 1.5 }

// steps counts how long z² + c stays near, up to 31 times.
func steps(re, im float64) (n int32) {
	for x, y := 0.0, 0.0; n < 31 && x*x+y*y <= 4; n++ {
		x, y = x*x-y*y+re, 2*x*y+im
	}
	return n
}

func show(p *image.Gray, file string, workers int) error {
	inside := 0
	for y := range *size {
		mirror := *size - 1 - y
		if !bytes.Equal(p.Pix[y*p.Stride:(y+1)*p.Stride], p.Pix[mirror*p.Stride:(mirror+1)*p.Stride]) {
			return fmt.Errorf("%w: rows %d and %d", errPicture, y, mirror)
		}
		inside += bytes.Count(p.Pix[y*p.Stride:(y+1)*p.Stride], []byte{255 - 8*31})
	}
	fmt.Printf("manager-worker: %d rows from %d workers, %d of 1000 pixels black, symmetric as it must be\n", *size, workers, 1000*inside/(*size**size))
	if file == "" {
		return nil
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, p), f.Close())
}
