package links

import (
	"fmt"
	"slices"

	"github.com/openimpi/impi/core/route"
	"github.com/openimpi/impi/plugins/sdk/transports"
)

// Advise fills in what would make the pairs of a job faster. It has no advice for pairs
// that use the best there is, nor if an operator cannot change anything.
func Advise(j *Job) {
	for i := range j.Pairs {
		j.Pairs[i].Faster = advise(j, &j.Pairs[i])
	}
}

type rule func(*Job, *Pair) []string

// rules are in the order of what they gain.
var rules = []rule{
	linkThem, stayOnTheMachine, shareTheMachine, useMemory, takeTheFaster, leaveThePlane, waitLess,
}

func advise(j *Job, p *Pair) (all []string) {
	for _, r := range rules {
		for _, s := range r(j, p) {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// linkThem is for pairs whose packets go through the agents: it says what prevents a direct
// link.
func linkThem(j *Job, p *Pair) (all []string) {
	if p.State != StateAgents {
		return nil
	}
	for _, v := range p.Views {
		switch {
		case v.excludedBy(route.NoCards):
			return nil // the other MPI has no direct links
		case !v.Route.Direct:
			all = append(all, fmt.Sprintf("direct = true in %s: packets go through the agents now", j.routeOf(v)))
		default:
			all = append(all, j.whatFailed(v)...)
		}
	}
	return all
}

func (j *Job) whatFailed(v View) (all []string) {
	for _, c := range v.Candidates {
		if c.Verdict == Failed {
			return append(all, j.repair(v, c))
		}
	}
	for _, c := range v.Candidates {
		if c.Verdict == Excluded && c.Rule != route.OtherMachine {
			all = append(all, j.admit(v, c))
		}
	}
	return all
}

// admit says what to change so that an excluded transport becomes a candidate.
func (j *Job) admit(v View, c Candidate) string {
	switch c.Rule {
	case route.NotPreferred:
		return fmt.Sprintf("%q in prefer of %s", c.Transport, j.routeOf(v))
	case route.NotOffered:
		return fmt.Sprintf("%q in prefer of a route of site %s, which does not listen by it", c.Transport, j.siteOf(v.Peer))
	case route.NotRunning:
		return fmt.Sprintf("a transport %q block at site %s", c.Transport, j.siteOf(v.Local))
	case route.NotEncrypted:
		if v.Route.Closed {
			return fmt.Sprintf("require_tls = false in %s: %s is not encrypted", j.routeOf(v), c.Transport)
		}
		return fmt.Sprintf("%s without require_tls: %s is not encrypted", j.routeOf(v), c.Transport)
	case route.WrongPlane:
		return fmt.Sprintf("%s without data_plane: %s has none of %q", j.routeOf(v), c.Transport, v.Route.DataPlane)
	default: // its reason says all
		return fmt.Sprintf("%s: %s", c.Transport, c.Reason)
	}
}

// What transports report about themselves: their reach, and a data plane without the
// kernel.
const (
	machineReach = string(transports.ReachMachine)
	sharedMemory = string(transports.PlanePeerSHM)
)

// stayOnTheMachine names a transport inside the machine to pairs on one machine that use a network.
func stayOnTheMachine(j *Job, p *Pair) (all []string) {
	if p.State != StateLinked || !p.sameMachine() || p.reach(p.Transport) != "network" {
		return nil
	}
	for _, v := range p.Views {
		if s := j.better(v, p.Transport, func(c Candidate) bool { return c.Reach == machineReach }); s != "" {
			all = append(all, "both are on one machine: "+s)
		}
	}
	return all
}

// useMemory names a transport with shared memory, if there is one, to pairs on one machine that use
// another transport, such as Unix sockets, where the kernel copies the data.
func useMemory(j *Job, p *Pair) (all []string) {
	if p.State != StateLinked || p.Plane == sharedMemory || p.reach(p.Transport) != machineReach {
		return nil
	}
	for _, v := range p.Views {
		if s := j.better(v, p.Transport, func(c Candidate) bool { return slices.Contains(c.Planes, sharedMemory) }); s != "" {
			all = append(all, "shared memory needs no system call: "+s)
		}
	}
	return all
}

// takeTheFaster is for pairs whose route prefers a transport that was measured to be slower
// than another one, by a factor that cannot be chance.
func takeTheFaster(j *Job, p *Pair) (all []string) {
	const clearly = 2
	if p.State != StateLinked || p.Speed == nil || p.Speed.How != HowProbe || p.Speed.HalfTrip == 0 {
		return nil
	}
	for _, v := range p.Views {
		for _, c := range v.Candidates {
			if c.Probe == nil || c.Probe.HalfTrip == 0 || clearly*c.Probe.HalfTrip > p.Speed.HalfTrip || c.Reach == machineReach {
				continue // other rules handle transports inside a machine
			}
			all = append(all, fmt.Sprintf("%q before %q in prefer of %s: %s instead of %s",
				c.Transport, p.Transport, j.routeOf(v), Duration(c.Probe.HalfTrip), Duration(p.Speed.HalfTrip)))
		}
	}
	return all
}

// better finds the first candidate that fits and was not chosen, and says what prevents its
// use.
func (j *Job) better(v View, chosen string, fits func(Candidate) bool) string {
	for _, c := range v.Candidates {
		if c.Transport == chosen || !fits(c) {
			continue
		}
		switch c.Verdict {
		case Excluded:
			return j.admit(v, c)
		case Possible:
			if v.Dialled || slices.Index(v.Route.Prefer, c.Transport) > slices.Index(v.Route.Prefer, chosen) {
				return fmt.Sprintf("%q before %q in prefer of %s", c.Transport, chosen, j.routeOf(v))
			}
		case Failed:
			return j.repair(v, c)
		case Chosen, Lost: // it works
		}
	}
	return ""
}

// repair says what to do about a transport that was tried and failed.
func (j *Job) repair(v View, c Candidate) string {
	if c.Rule == route.PeerRoutes {
		return fmt.Sprintf("%q in prefer of a route of site %s, which does not allow it", c.Transport, j.siteOf(v.Peer))
	}
	return fmt.Sprintf("make %s work, which failed: %s", c.Transport, c.Reason)
}

// shareTheMachine is for sites on one machine that do not know that they are.
func shareTheMachine(j *Job, p *Pair) []string {
	if p.State != StateLinked && p.State != StateAgents {
		return nil
	}
	if p.SiteA == p.SiteB || len(p.Views) < 2 || p.sameMachine() || p.Views[0].excludedBy(route.NoCards) || !j.isHere(p.A) || !j.isHere(p.B) {
		return nil
	}
	return []string{"both nodes run on this machine, but under different users or network namespaces: with the same ones they could share memory"}
}

// isHere reports whether a node of a rank's site was asked on this machine.
func (j *Job) isHere(rank int) bool {
	return slices.ContainsFunc(j.Sites, func(s SiteState) bool { return s.Here && rank >= s.First && rank < s.First+s.Procs })
}

// leaveThePlane is for links whose bytes pass through a plugin although they need not.
func leaveThePlane(j *Job, p *Pair) (all []string) {
	if p.State != StateLinked || p.Plane != "grpc" && p.Plane != "stream" {
		return nil
	}
	for _, v := range p.Views {
		if slices.Contains(v.Route.DataPlane, p.Plane) {
			all = append(all, fmt.Sprintf("no data_plane in %s: it pins %s, which copies every byte through the plugin", j.routeOf(v), p.Plane))
		}
	}
	if all == nil {
		all = append(all, fmt.Sprintf("a plugin %s that can do better than %s", p.Transport, p.Plane)+inBrackets(p.PlaneReason))
	}
	return all
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// waitLess is for ends that sleep where polling would be quicker.
func waitLess(j *Job, p *Pair) (all []string) {
	if p.State != StateLinked && p.State != StateAgents {
		return nil
	}
	for _, rank := range []int{p.A, p.B} {
		w, ok := j.waitOf(rank)
		switch {
		case !ok:
		case w.Setting == "0" || w.Setting == "0s":
			all = append(all, fmt.Sprintf(`wait { spin = "auto" } at site %s: its procs sleep at once, and waking one takes longer than most messages`, j.siteOf(rank)))
		case w.Oversubscribed:
			all = append(all, fmt.Sprintf("a core for rank %d: other processes use its own, so it has stopped polling", rank))
		}
	}
	return all
}

func (j *Job) waitOf(rank int) (Waiting, bool) {
	for _, s := range j.Sites {
		for _, p := range s.Ranks {
			if p.Rank == rank {
				return p.Wait, p.Silent == ""
			}
		}
	}
	return Waiting{}, false
}

func (j *Job) routeOf(v View) string {
	site := j.siteOf(v.Local)
	if v.Route.Site == "" {
		return fmt.Sprintf("a route %q block of site %s", j.siteOf(v.Peer), site)
	}
	return fmt.Sprintf("route %q of site %s", v.Route.Site, site)
}

func (v *View) excludedBy(r route.Rule) bool {
	return len(v.Candidates) > 0 && v.Candidates[0].Rule == r
}

func (p *Pair) sameMachine() bool { return p.Views[0].SameMachine }

func (p *Pair) reach(transport string) string {
	for _, v := range p.Views {
		for _, c := range v.Candidates {
			if c.Transport == transport && c.Reach != "" {
				return c.Reach
			}
		}
	}
	return ""
}
