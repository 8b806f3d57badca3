package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"syscall"
)

// checkRanks reports client ranks that two sites share, and missing ones if the file
// describes the whole job.
func (b *builder) checkRanks() {
	holder := map[int]*siteDraft{}
	for _, s := range b.sites {
		if !s.ranks {
			continue
		}
		if first := holder[s.Client]; first != nil {
			b.fault(s.block.at("client"), "site "+quote(first.Name)+" in line "+itoa(first.Pos.Line)+
				" has client rank "+itoa(s.Client)+" already", b.freeRank())
			continue
		}
		holder[s.Client] = s
	}
	expected := b.expected()
	for _, s := range b.sites {
		if s.ranks && expected > 0 && s.Client >= expected {
			b.fault(s.block.at("client"), "the job has "+plural(expected, "client")+" and so no client rank "+itoa(s.Client), b.freeRank())
		}
	}
}

// expected returns the number of clients of the job, or 0 if it is not known.
func (b *builder) expected() int {
	if b.result.Complete {
		return len(members(b))
	}
	for _, s := range b.sites {
		if s.Server.Embedded {
			return s.Server.Clients
		}
	}
	return 0
}

func (b *builder) freeRank() string {
	for rank := range maxClients {
		taken := func(s *siteDraft) bool { return s.ranks && s.Client == rank }
		if !slices.ContainsFunc(b.sites, taken) {
			return "client = " + itoa(rank) + " is free; ranks start at 0 without holes"
		}
	}
	return "a job has at most " + itoa(maxClients) + " clients"
}

func (s *siteDraft) checkTrace(pos Pos, trace, what, example string) {
	if (s.Procs() > 1 || !s.CountsKnown()) && !ofEachRank(trace) {
		s.fault(pos, "several procs would write their "+what+" to one file", "put %r, the rank, into the name: "+quote(example))
	}
}

// mostTraced is the maximum number of ranks whose timelines are checked.
const mostTraced = 4096

// checkFiles reports files that would be replaced or cut, and are no regular files of this machine:
// as root that would destroy devices, and a pipe would block the procs. It also reports those whose
// folder is not there, which nobody would hear of before the end of the job.
func (b *builder) checkFiles() {
	procs := 0
	for _, s := range b.ours() {
		procs += s.Procs()
	}
	for _, s := range b.ours() {
		if !s.here() {
			continue
		}
		if r := &b.result.Report; r.Path != "" && (s.opt.Local == nil || len(s.Hosts) == 0 || headHere(s)) {
			b.checkFile(r.Pos, r.Name(b.result.Name(), s.Name, len(b.sites)), absolute(inPattern(r.Dir), r.Path), "job-%j.html")
		}
		own, shared := s.layers("trace")
		for rank := 0; s.Trace.Calls != "" && rank < min(max(procs, 1), mostTraced); rank++ {
			if b.checkFile(cmp.Or(own, shared).at("calls"), TraceFile(s.Trace.Calls, rank), s.Trace.Calls, "calls-%r.json") {
				break
			}
		}
		if s.Log.Trace != "" {
			own, shared := s.layers("log")
			b.checkFolder(placeOf("trace", own, shared), TraceFile(s.Log.Trace, 0), s.Log.Trace)
		}
	}
}

// checkFile returns true if it has reported a file. Pattern is its name with %.
func (b *builder) checkFile(pos Pos, path, pattern, example string) bool {
	if err := NotRegular(path); err != nil {
		b.fault(pos, err.Error(), "write the name of a file that is not there yet, or of a regular one: "+quote(example))
		return true
	}
	return b.checkFolder(pos, path, pattern)
}

// checkFolder returns true if it has reported that there is no folder for a file.
func (b *builder) checkFolder(pos Pos, path, pattern string) bool {
	problem := folderFault(path, pattern)
	if problem != "" {
		b.fault(pos, problem, "make it, or write another path; a relative one starts from the folder of the job file")
	}
	return problem != ""
}

// NotRegular returns what kind of file is at a path, if it is not a regular file. Symbolic links
// are not followed: whoever may write to the folder could make a job of root use any file.
func NotRegular(path string) error {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() {
		return nil // a file that cannot be examined cannot be opened either
	}
	kind := "a special file"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind = "a folder"
	case mode&fs.ModeSymlink != 0:
		kind = "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	}
	return fmt.Errorf("%s is %s and no regular file", path, kind)
}

func (b *builder) checkTogether() {
	b.checkPorts()
	b.checkServerPlace()
	checkSpares(b)
	for _, s := range b.ours() {
		s.checkElsewhere()
		s.checkTwice()
	}
	b.checkAgreement()
	b.checkDialects()
	b.checkKeys()
	b.checkOpen()
	b.checkFiles()
}

func (b *builder) checkPorts() {
	taken := map[netip.AddrPort]string{}
	claim := func(s *siteDraft, at netip.AddrPort, pos Pos, who string, listens bool) {
		if !at.Addr().IsValid() || !at.Addr().IsUnspecified() && s.notHere(at.Addr(), pos, who, listens) || at.Port() == 0 {
			return
		}
		if first, again := taken[at]; again {
			b.fault(pos, first+" listens on "+at.String()+" too", "write another port, or 0 for any free one")
			return
		}
		taken[at] = who
		if b.opt.CheckPort == nil || !s.here() {
			return
		}
		err := b.opt.CheckPort(at)
		if runs, ok := errors.AsType[Runs](err); ok {
			b.warn(pos, "cannot listen on "+at.String()+" for now: "+runs.Error(), "the file can be run again when that job has ended (impi-node links)")
		} else if err != nil {
			b.fault(pos, "cannot listen on "+at.String()+": "+err.Error(), ListenRemedy(at, err))
		}
	}
	for _, s := range b.ours() {
		if at := s.Metrics.Listen; at.IsValid() && s.here() { // other machines may use it too
			claim(s, at, s.Metrics.Pos, "what serves metrics of site "+quote(s.Name), true)
		}
		if at := s.UI.Listen; at.IsValid() && s.here() {
			claim(s, at, s.UI.Pos, "the page of site "+quote(s.Name), headHere(s))
		}
		if s.Server.Embedded {
			claim(s, s.Server.Address, s.Server.Pos, embeddedServer, headHere(s))
		}
		for _, h := range s.Hosts {
			if s.Network != (Network{}) {
				break // the addresses are chosen when the hosts start
			}
			claim(s, netip.AddrPortFrom(h.Address, h.Port), h.portPos, "a host of site "+quote(s.Name), false) // its address was checked before
		}
	}
}

// checkServerPlace reports an embedded server whose address is another machine's than that of the
// head of its site, which runs it: for certain if another host has it, else perhaps. Whether this
// machine has the address is for checkPorts to report.
func (b *builder) checkServerPlace() {
	s := b.embedding()
	if s == nil || len(s.Hosts) == 0 {
		return
	}
	head, at := s.Hosts[0], s.Server.Address.Addr()
	same := func(h Host) bool { return at.IsValid() && h.Address == at || h.Name != "" && h.Name == s.Server.Name }
	known := at.IsValid() && head.Address.IsValid()
	if same(head) || known && at.IsLoopback() || s.opt.Local != nil && head.Address.IsValid() && s.opt.Local(head.Address) {
		return
	}
	for _, x := range b.ours() {
		if slices.ContainsFunc(x.Hosts, same) {
			b.fault(s.Server.Pos, "the server would listen on "+s.Server.String()+", the address of a host of site "+quote(x.Name)+", but it runs on "+head.String()+", the first host of site "+quote(s.Name),
				"write an address of "+head.String()+", as in listen = "+quote(head.String()+":7800")+", or move the block into the site whose first host has that address")
			return
		}
	}
	if known && s.Network == (Network{}) && len(s.Hosts) > 1 {
		b.warn(s.Server.Pos, "the server would listen on "+s.Server.String()+", but it runs on "+head.String()+", the first host of site "+quote(s.Name),
			"give "+head.String()+" this address too, or write listen = "+quote(head.String()+":7800"))
	}
}

const embeddedServer = "the embedded server"

// headHere reports whether the first host of a site is this machine.
func headHere(s *siteDraft) bool {
	return s.opt.Local != nil && len(s.Hosts) > 0 && s.Hosts[0].Address.IsValid() && s.opt.Local(s.Hosts[0].Address)
}

// notHere reports whether a listener of a site that runs here has an address that this machine does
// not have. It records that as a fault if a node of this machine listens there.
func (s *siteDraft) notHere(at netip.Addr, pos Pos, who string, listens bool) bool {
	if s.opt.Local == nil || !s.here() || s.opt.Local(at) {
		return false
	}
	if listens {
		what := who + " listens on this machine"
		if who == embeddedServer {
			what = "site " + quote(s.Name) + " runs the server on this machine"
		}
		s.fault(pos, what+", which does not have the address "+at.String(), ListenRemedy(netip.AddrPortFrom(at, 0), syscall.EADDRNOTAVAIL))
	}
	return true
}

// ListenRemedy says what to do where a listener cannot be opened.
func ListenRemedy(at netip.AddrPort, err error) string {
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "no interface of this machine has " + at.Addr().String() + ": write an address that `ip -br address` shows"
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "ports below 1024 are for root: write one from 1024 to 65535"
	case errors.Is(err, syscall.EADDRINUSE):
		return "end what has that port, such as a job that still runs (`ss -ltnp` and impi-node links show them), or write another port"
	}
	return "write another address or port"
}

// checkAgreement reports values that must be equal at all clients but are not. IMPI ch.2:
// XSIZE and MAXLINEAR are compared after -1 was replaced.
func (b *builder) checkAgreement() {
	ours := ourMembers(b)
	type common struct {
		name     string
		of       func(Protocol) int32
		fallback int32
	}
	for _, c := range []common{
		{"xsize", func(p Protocol) int32 { return p.XSize }, 1024},
		{"maxlinear", func(p Protocol) int32 { return p.MaxLinear }, 4},
	} {
		value := func(s *siteDraft) int32 {
			if v := c.of(s.Protocol); v >= 0 {
				return v
			}
			return c.fallback
		}
		for _, s := range ours[min(1, len(ours)):] {
			if value(s) != value(ours[0]) {
				own, shared := s.layers("protocol")
				pos := placeOf(c.name, own, shared)
				if pos.IsZero() {
					pos = s.Pos
				}
				b.fault(pos, c.name+" is "+itoa(int(value(s)))+" here and "+itoa(int(value(ours[0])))+" in site "+quote(ours[0].Name)+": they must agree",
					"write it once, in a protocol block at the top of the file")
			}
		}
	}
}

func (b *builder) checkKeys() {
	home := b.embedding()
	if home == nil {
		return
	}
	for _, s := range b.ours() {
		pos := s.Pos
		if auth := s.block.only("auth"); auth != nil {
			pos = auth.pos
		}
		switch {
		case s.Auth.Random || home.Auth.Random, s.doubt || home.doubt:
		case s.Auth.Keyed && home.Auth.Keyed:
			if s.Auth.Key != home.Auth.Key && s.here() && home.here() {
				b.fault(pos, "site "+quote(s.Name)+" has another key than site "+quote(home.Name)+", which runs the server",
					"give all sites one key: put auth into the job block")
			}
		case !s.Auth.None || !home.Auth.None:
			b.fault(pos, "site "+quote(s.Name)+" and site "+quote(home.Name)+", which runs the server, have no authentication in common",
				"put auth into the job block")
		}
	}
}

// checkOpen warns of a server that accepts anybody who can reach it.
func (b *builder) checkOpen() {
	home := b.embedding()
	if home == nil || !home.Auth.None || home.Server.Address.Addr().IsLoopback() {
		return
	}
	blocks := home.block.all("auth")
	if len(blocks) == 0 {
		blocks = b.job.all("auth")
	}
	for _, in := range blocks {
		if in.label == "none" {
			b.warn(in.pos, "the job's server listens on "+home.Server.String()+`, and with auth "none" anybody who reaches it can join the job`,
				`write auth "key" { file = "job.key" }, or listen on 127.0.0.1 if all sites are on this machine`)
		}
	}
}

// embedding returns the site with the embedded server, or nil.
func (b *builder) embedding() *siteDraft {
	for _, s := range b.sites {
		if s.Server.Embedded {
			return s
		}
	}
	return nil
}
