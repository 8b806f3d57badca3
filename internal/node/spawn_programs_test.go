package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/openimpi/impi/core/dynamic"
	"github.com/openimpi/impi/core/mpi"
	"github.com/openimpi/impi/internal/wireup"
)

// order is what a proc of the program "spawn" is told to spawn, by SPAWN_ORDERS: a JSON
// list of such. All procs of the world call it.
type order struct {
	Commands []ordered
	Root     int
	Keep     bool   // the children stay connected
	Stop     string // what to do then
}

type ordered struct {
	Path  string // empty: the test binary
	Mode  string // of the child
	Procs int
	Info  map[string]string
	Args  []string
}

// spawnOrders has a site's program spawn.
func spawnOrders(orders ...order) map[string]string {
	b, err := json.Marshal(orders)
	if err != nil {
		panic(err)
	}
	return map[string]string{roleVariable: "proc", modeVariable: "spawn", "SPAWN_ORDERS": string(b)}
}

func init() {
	programs["spawn"] = func() {
		w := joined()
		var orders []order
		check(json.Unmarshal([]byte(os.Getenv("SPAWN_ORDERS")), &orders))
		for _, o := range orders {
			carryOut(w, o)
		}
		if w.Rank() == 0 {
			fmt.Println("all done")
		}
		finalize()
	}
	programs["either"] = func() { // what stands for all of a site's procs
		check(mpi.Init())
		if mpi.Parent() != nil {
			programs["child"]()
			return
		}
		programs["spawn"]()
	}
	programs["either-steady"] = func() {
		check(mpi.Init())
		if mpi.Parent() != nil {
			programs["steady"]()
			return
		}
		programs["spawn"]()
	}
	programs["child"] = func() {
		w := joined()
		parents := mpi.Parent()
		n, ok, err := w.Attr(mpi.AppNum)
		check(err)
		dir, err := os.Getwd()
		check(err)
		fmt.Println("child", w.Rank(), "of", w.Size(), "appnum", n, ok, "parent", parents.Name(), "args", os.Args[1:], "in", dir, "extra", os.Getenv("EXTRA"))
		greet(parents, true)
		check(parents.Disconnect())
		if mpi.Parent() != nil {
			panic("the parents are left, and still there")
		}
		ring(w)
		finalize()
	}
	programs["grandparent"] = func() { // a child that has a child
		initialize()
		parents := mpi.Parent()
		carryOut(mpi.World(), order{Commands: []ordered{{Mode: "child", Procs: 2}}})
		greet(parents, true)
		check(parents.Disconnect())
		finalize()
	}
	programs["steady"] = func() { // stays connected for ever
		joined()
		greet(mpi.Parent(), true)
		fmt.Println("steady")
		hang()
	}
	programs["free"] = func() { // goes on alone for ever
		initialize()
		greet(mpi.Parent(), true)
		check(mpi.Parent().Disconnect())
		fmt.Println("on its own")
		hang()
	}
	programs["fails"] = func() { // ends badly, connected with its parents
		initialize()
		greet(mpi.Parent(), true)
		os.Exit(17)
	}
	programs["fails-free"] = func() { // ends badly, on its own
		initialize()
		greet(mpi.Parent(), true)
		check(mpi.Parent().Disconnect())
		os.Exit(18)
	}
	programs["aborts"] = func() {
		initialize()
		greet(mpi.Parent(), true)
		mpi.Abort(19, "the child has had enough")
	}
	programs["no-init"] = func() { os.Exit(3) }
	programs["never-init"] = func() { fmt.Println("pid", os.Getpid()); hang() }
	programs["no-call"] = func() { hello(); os.Exit(4) } // in Init, where it was to call its parents
	programs["never-call"] = func() { hello(); hang() }
	programs["call-dies"] = func() { // dies as soon as it has the link to its parents
		c, job := welcome()
		callParents(c, job)
		check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
}

// carryOut spawns, greets the children and leaves them.
func carryOut(w *mpi.Comm, o order) {
	self, err := os.Executable()
	check(err)
	var commands []mpi.Command
	if w.Rank() == o.Root {
		for _, x := range o.Commands {
			info := mpi.NewInfo()
			env := []string{modeVariable + "=" + x.Mode}
			if x.Info["env"] != "" {
				env = append(env, x.Info["env"])
			}
			if !slices.Contains([]string{"beta", "127.0.0.3"}, x.Info["host"]) { // whose environment is its own
				check(info.Set("env", strings.Join(env, "\n")))
			}
			for k, v := range x.Info {
				if k != "env" {
					check(info.Set(k, v))
				}
			}
			c := mpi.Command{Path: x.Path, Args: x.Args, Procs: x.Procs, Info: info}
			if c.Path == "" {
				c.Path = self
			}
			commands = append(commands, c)
		}
	}
	children, codes, err := w.SpawnMultiple(commands, o.Root)
	if err != nil {
		fmt.Println("codes", codes, "class", mpi.ErrorClass(err), "error", err)
		if children != nil {
			panic("an error and a communicator")
		}
		return
	}
	n, err := children.RemoteSize()
	check(err)
	fmt.Println("codes", codes, "children", n)
	greet(children, false)
	switch o.Stop {
	case "hang":
		hang()
	case "die":
		check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	if !o.Keep {
		check(children.Disconnect())
	}
}

// greet has all of both sides talk to all, and add up their merged ranks.
func greet(inter *mpi.Comm, high bool) {
	n, err := inter.RemoteSize()
	check(err)
	var open []mpi.Request
	got := make([]int64, n)
	for r := range n {
		in, err := mpi.Irecv(inter, got[r:r+1], r, 5)
		check(err)
		out, err := mpi.Isend(inter, []int64{int64(inter.Rank()*1000 + r)}, r, 5)
		check(err)
		open = append(open, in, out)
	}
	check(mpi.Waitall(open, nil))
	for r := range n {
		if got[r] != int64(r*1000+inter.Rank()) {
			panic(fmt.Sprint("from ", r, ": ", got[r]))
		}
	}
	all, err := inter.Merge(high)
	check(err)
	sum := []int64{0}
	check(mpi.Allreduce(all, []int64{int64(all.Rank())}, sum, mpi.Sum))
	if want := int64(all.Size() * (all.Size() - 1) / 2); sum[0] != want {
		panic(fmt.Sprint("sum ", sum[0], ", want ", want))
	}
	fmt.Println("merged", all.Size())
	check(errors.Join(all.Disconnect()))
}

// callParents calls the port of the parents as Init does, and waits for the link.
func callParents(c *wireup.Conn, job *wireup.Job) {
	port, err := dynamic.ParsePort(job.Parent)
	check(err)
	card, err := port.Card.AppendText(nil)
	check(err)
	check(c.Send(wireup.Message{Kind: wireup.KindConnect, Meeting: &wireup.OtherWorld{Request: 1, Key: port.Key[:], Card: string(card)}}))
	for {
		m, fds, err := c.Recv()
		check(err)
		if m.Kind == wireup.KindConnected {
			wireup.CloseAll(fds)
			return
		}
	}
}

// welcome is hello with what the node says of the job.
func welcome() (*wireup.Conn, *wireup.Job) {
	c, _, err := wireup.Inherited()
	check(err)
	check(c.Send(wireup.Message{Kind: wireup.KindHello, Version: wireup.Version, Library: "test"}))
	_, fds, err := c.Recv()
	check(err)
	job, err := wireup.OpenJob(fds[1], fds[2])
	check(err)
	return c, job
}

// joined is initialize, unless Init was called.
func joined() *mpi.Comm {
	if !mpi.Initialized() {
		return initialize()
	}
	return mpi.World()
}
