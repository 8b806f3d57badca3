// Command pair measures a pair of procs over a wide area: round trips of a short message, or the
// rate of a stream of long ones. measure/testdata/pair.c is the same for other MPIs.
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/openimpi/impi/core/mpi"
)

const (
	length = 256 << 10 // bytes of a message of a stream
	depth  = 256       // messages of a stream at a time: 64 MiB, more than is under way at 1 Gb/s over 200 ms

	tagData = 1
	tagStop = 2
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pair:", err)
		mpi.Abort(1, err.Error())
	}
}

// run is a rank's part: latency SECONDS, or stream OMIT SECONDS [DATA].
func run(args []string) error {
	var times []time.Duration
	kind := "zeros"
	if len(args) == 4 {
		kind, args = args[3], args[:3]
	}
	for _, a := range args[min(1, len(args)):] {
		s, err := strconv.ParseFloat(a, 64)
		if err != nil {
			return err
		}
		times = append(times, time.Duration(s*float64(time.Second)))
	}
	if err := mpi.Init(); err != nil {
		return err
	}
	w := mpi.World()
	var err error
	switch {
	case w.Size() != 2:
		err = fmt.Errorf("there are %d procs: start 2", w.Size())
	case len(times) == 1 && args[0] == "latency":
		err = latency(w, times[0])
	case len(times) == 2 && args[0] == "stream" && w.Rank() == 0:
		err = send(w, kind)
	case len(times) == 2 && args[0] == "stream":
		err = receive(w, times[0], times[1])
	default:
		err = fmt.Errorf("%q: write latency SECONDS, or stream OMIT SECONDS [DATA]", args)
	}
	if err != nil {
		return err
	}
	return mpi.Finalize()
}

// latency prints the median of round trips, at least five, after three that make the link.
func latency(w *mpi.Comm, whole time.Duration) error {
	message := make([]byte, 8)
	var trips []float64
	for begun := time.Now(); ; {
		at := time.Now()
		message[0] = 1
		if len(trips) >= 8 && at.Sub(begun) > whole {
			message[0] = 0
		}
		if w.Rank() == 0 {
			if err := mpi.Send(w, message, 1, tagData); err != nil {
				return err
			}
		}
		if _, err := mpi.Recv(w, message, 1-w.Rank(), tagData); err != nil {
			return err
		}
		if w.Rank() == 1 {
			if err := mpi.Send(w, message, 0, tagData); err != nil {
				return err
			}
		}
		if trips = append(trips, float64(time.Since(at).Nanoseconds())/1e6); message[0] == 0 {
			break
		}
	}
	if w.Rank() == 0 {
		trips = trips[3:]
		slices.Sort(trips)
		fmt.Printf("pair: %g ms\n", trips[len(trips)/2])
	}
	return nil
}

func send(w *mpi.Comm, kind string) error {
	data, err := dataOf(kind)
	if err != nil {
		return err
	}
	enough, err := mpi.Irecv(w, make([]byte, 1), 1, tagStop)
	if err != nil {
		return err
	}
	reqs := make([]mpi.Request, depth)
	for i := 0; ; i = (i + 1) % depth {
		if _, err := reqs[i].Wait(); err != nil {
			return err
		}
		done, _, err := enough.Test()
		if err != nil {
			return err
		}
		if done {
			break
		}
		if reqs[i], err = mpi.Isend(w, data, 1, tagData); err != nil {
			return err
		}
	}
	if err := mpi.Waitall(reqs, nil); err != nil {
		return err
	}
	return mpi.Send(w, data[:0], 1, tagData)
}

// receive takes a stream, and prints its rate from omit until omit+whole after its first message.
func receive(w *mpi.Comm, omit, whole time.Duration) (err error) {
	data := make([]byte, length)
	reqs := make([]mpi.Request, depth)
	for i := range reqs {
		if reqs[i], err = mpi.Irecv(w, data, 0, tagData); err != nil {
			return err
		}
	}
	var first, begun time.Time
	var bytes int
	stopped, last := false, 0
	for i := 0; ; i = (i + 1) % depth {
		st, err := reqs[i].Wait()
		if err != nil {
			return err
		}
		if st.Bytes() == 0 {
			last = i
			break
		}
		now := time.Now()
		switch {
		case first.IsZero():
			first = now
		case stopped:
		case begun.IsZero() && now.Sub(first) >= omit:
			begun = now
		case !begun.IsZero():
			bytes += length
			if t := now.Sub(begun); t >= whole {
				fmt.Printf("pair: %g Mb/s\n", float64(bytes)*8/1e6/t.Seconds())
				stopped = true
				if err := mpi.Send(w, []byte{1}, 0, tagStop); err != nil {
					return err
				}
			}
		}
		if reqs[i], err = mpi.Irecv(w, data, 0, tagData); err != nil {
			return err
		}
	}
	for i := 1; i < depth; i++ { // nothing is sent to these any more
		q := &reqs[(last+i)%depth]
		if err := q.Cancel(); err != nil {
			return err
		}
		if _, err := q.Wait(); err != nil {
			return err
		}
	}
	return nil
}
