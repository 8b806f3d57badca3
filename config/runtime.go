package config

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Pos is a part of one line of a job file. The zero Pos means no position, as for defaults.
type Pos struct {
	File      string `json:"file,omitempty"`       // as it was given to Load
	Line      int    `json:"line,omitempty"`       // from 1
	Column    int    `json:"column,omitempty"`     // from 1, in characters
	EndColumn int    `json:"end_column,omitempty"` // first column after the part
}

// IsZero reports whether p means no position, as for a value that the file does not set.
func (p Pos) IsZero() bool { return p.Line == 0 }

// String returns file:line:column, or only the file if p has no line.
func (p Pos) String() string {
	if p.IsZero() {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Job is the content of one job file.
type Job struct {
	File     string // path as given to Load; empty when there is no file
	Dir      string // absolute folder that relative paths start from
	Sites    []Site // in ascending client rank, without spare sites
	Spares   []Site // spare sites, in the order of the file
	Complete bool   // Sites are all clients of the job
	Survive  bool   // the loss of a proc or a site does not end the job
	Limits   Limits
	Report   Report
	Builtins []Builtin // from Options
	Plugins  []Plugin  // in the order of the file

	source []string // lines of the file, for diagnostics of faults that are found later
	calls  Said     // what Record was told of calls
}

// Name returns the job's name: that of its file, without folder and extension, or of its programs.
func (j *Job) Name() string {
	if j.File != "" {
		return strings.TrimSuffix(filepath.Base(j.File), filepath.Ext(j.File))
	}
	var names []string
	for i := range j.Sites {
		s := &j.Sites[i]
		programs := []Program{s.Program}
		if len(s.Parts) > 0 {
			programs = programs[:0]
			for k := range s.Parts {
				programs = append(programs, s.Parts[k].Program)
			}
		}
		for k := range programs {
			if name := programs[k].name(); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	const most = 3
	if len(names) > most {
		names = append(names[:most], "more")
	}
	return cmp.Or(strings.Join(names, "+"), "job")
}

// Site is one client of the job, complete with defaults.
type Site struct {
	Name    string
	Client  int  `hcl:"client"`  // IMPI client rank; -1: none, as for a spare site
	Spare   bool `hcl:"spare"`   // it has no procs at first, and waits for procs that are spawned there
	Foreign bool `hcl:"foreign"` // it runs another MPI; only Name, Client and the next three fields are used

	Implementation Implementation `hcl:"implementation"` // MPI of a foreign site, if the file names it
	Representation Representation `hcl:"representation"` // of user data to and from a foreign site, if the file sets it
	ChannelsFrom   []netip.Prefix `hcl:"channels_from"`  // additional addresses from which the hosts of a foreign site may connect

	Server   Server
	Auth     Auth
	Hosts    []Host
	Head     netip.AddrPort `hcl:"head"` // where the first host accepts connections of hosts on other machines; invalid: HeadPort of its address
	HeadName string         // the host name in head, if it has one
	Ports    Ports          // listeners use these ports, unless the file names one; zero: any
	Network  Network        `hcl:"network"` // selects the addresses that the hosts' links use; zero: those of Hosts
	Launch   *Launch        // how the head starts the nodes of the other hosts; nil: it does not
	Native   *Native        // the site's own MPI starts the procs and carries their messages; nil: the nodes start them
	Program  Program
	Parts    []Part // programs of the procs in their order, instead of Program; usually empty

	// Transports are the built-in ones, in the order given to Load, and then the
	// ones that only a plugin offers, in file order.
	Transports []Transport
	Routes     []Route // the route blocks that apply to this site; see RouteTo
	Protocol   Protocol
	Labels     Labels
	Wait       Wait
	Progress   time.Duration // interval at which computing procs make progress; 0: only in MPI calls
	Log        Log
	Metrics    Metrics
	UI         UI
	Trace      Trace
	Spawn      Spawn
	Names      Names
	Pos        Pos

	headPort uint16 // one of Ports; 0: HeadPort
}

// HeadPort is the default port of a site's head.
const HeadPort = 7802

// HeadAddress returns where the head accepts connections of the site's hosts on other machines.
func (s *Site) HeadAddress() netip.AddrPort {
	if s.Head.IsValid() {
		return s.Head
	}
	return netip.AddrPortFrom(s.Hosts[0].Address, cmp.Or(s.headPort, HeadPort))
}

// HostsHere returns the hosts with addresses of this machine, as indexes in Hosts.
func (s *Site) HostsHere(isLocal func(netip.Addr) bool) (here []int) {
	for i, h := range s.Hosts {
		if isLocal(h.Address) {
			here = append(here, i)
		}
	}
	return here
}

// Server describes how a site finds the job's server.
type Server struct {
	// Embedded is true for the one site whose node runs the server.
	Embedded bool

	// Address is where the server listens; never the unspecified address. Port 0 is possible only
	// if the server is embedded in a site of the same file; the process that starts the sites then
	// chooses a port and passes it to all of them.
	Address netip.AddrPort
	Name    string // the host name that the file has for Address, if any

	// Standby contains the further addresses if the file lists several servers. All sites meet at
	// one of the servers.
	Standby []ServerAddress

	Clients int           // number of clients that the embedded server waits for; else 0
	Timeout time.Duration // maximum time that the embedded server waits for clients; else 0
	Pos     Pos

	// Ours is true if a node of this job, or its launcher, embeds the server; Foreign if it is
	// another MPI's server, which supports plain IMPI only.
	Ours, Foreign bool
	TLS           ServerTLS
}

// ServerAddress is one of the servers at which the sites of a job may meet.
type ServerAddress struct {
	Address netip.AddrPort
	Name    string // the host name that the file has for Address, if any
}

// String returns the name of the server in messages: its address as in the file.
func (s ServerAddress) String() string {
	if s.Name != "" {
		return s.Name + ":" + itoa(int(s.Address.Port()))
	}
	return s.Address.String()
}

// All returns the addresses at which the sites may meet, in the order of the file.
func (s *Server) All() []ServerAddress {
	return append([]ServerAddress{{s.Address, s.Name}}, s.Standby...)
}

// String returns the name of the server in messages: its address as in the file, or all of its
// addresses.
func (s *Server) String() string {
	var all []string
	for _, x := range s.All() {
		all = append(all, x.String())
	}
	return strings.Join(all, ", ")
}

// ServerTLS is the value of require_tls beside server, or in embedded_server.
type ServerTLS uint8

// The values of require_tls.
const (
	TLSUnsaid   ServerTLS = iota // not set: the same as true for a site that has certificates
	TLSRequired                  // nothing is sent without TLS
	TLSOptional                  // a site with certificates continues without TLS, with a warning
)

// Auth is what a site offers (or its embedded server accepts) as authentication.
// At least one of None, Keyed and Random holds.
type Auth struct {
	None  bool
	Keyed bool
	Key   uint64 // if Keyed

	// File and Variable are the source of the key: its path as in the file, or the name of an
	// environment variable.
	File, Variable string

	// Random is true if the process that starts the job chooses a random key for all sites: the
	// file describes a whole job on the loopback network and has no auth block.
	Random bool
}

// Host is one IMPI host: an agent and its procs.
type Host struct {
	Address netip.Addr `hcl:"address"` // no wildcard; advertised to others, and source of connections
	Name    string     // the host name that the file has for Address, if any
	Procs   int        `hcl:"procs"` // at least 1; 0: Auto, known to its machine only
	Auto    bool       // procs = "auto": the number of cores, or as a scheduler has allocated
	Port    uint16     `hcl:"port"`   // port of the IMPI channels' listener; 0: any
	NoBoard bool       `hcl:"!board"` // its procs share no memory for collective operations
	Pos     Pos

	portPos Pos // position of port in the file, or Pos
}

// String returns the name of the host in messages: its address as in the file.
func (h Host) String() string {
	return cmp.Or(h.Name, h.Address.String())
}

// Program is what each proc of a site runs.
type Program struct {
	Command      []string `hcl:"command"` // as written, at least one word
	Path         string   // absolute path of Command[0]; empty if it was not found here
	Dir          string   `hcl:"dir"` // absolute working folder
	Env          map[string]string
	PrefixOutput bool `hcl:"prefix_output"` // "[rank] " before each line of output
	Stdin        int  `hcl:"stdin"`         // world rank of the proc that reads the node's stdin; -1: none

	Bind Bind `hcl:"bind"` // which CPUs a proc may run on; empty: BindNone

	// OutFile and ErrFile name files for a proc's output; %r in them stands for its rank. Empty
	// means the node's own standard output and error.
	OutFile, ErrFile string

	Pos Pos
}

// Bind selects the CPUs that a proc may run on.
type Bind string

// The bindings.
const (
	BindNone Bind = "none" // all CPUs that the node may use
	BindCore Bind = "core" // those of one core that no other proc of the job uses on this machine
)

// Bindings lists the values of Bind.
var Bindings = []string{string(BindNone), string(BindCore)}

// Transport is one transport that a site's routes may name.
type Transport struct {
	Name     string
	Builtin  bool    // impi-node itself acts as the plugin
	Known    Builtin // properties of a built-in transport
	Plugin   string  `hcl:"plugin"`
	Path     string  // absolute path of Plugin; empty for built-in ones or if not found here
	SHA256   string  `hcl:"sha256"`         // of the plugin binary: 64 lower-case hex digits, or empty
	NoMTLS   bool    `hcl:"!auto_mtls"`     // the plugin's control connection is not protected by AutoMTLS
	Free     bool    `hcl:"!confine"`       // the plugin has all rights of its node
	Apart    bool    `hcl:"user_namespace"` // the plugin has its own user namespace
	Version  string  // version in the lock file; empty unless Plugin is the name of a plugin block
	Install  string  // the command that installs Version; empty if Version is
	Settings []Setting

	// Env is added to the plugin's environment. Values may be secrets: messages contain only the
	// names.
	Env map[string]string `hcl:"env"`

	Dir string // folder from which relative paths among Settings start, absolute
	Pos Pos    // zero without a block

	settings Pos // position of the config block
}

// Setting is one attribute of a transport's config block, which the transport's schema has
// not checked yet.
type Setting struct {
	Name  string
	Value any // string, float64, bool or []string
	Pos   Pos
}

// Environment returns t.Env as a sorted list of "NAME=value", for a process.
func (t Transport) Environment() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(t.Env)) {
		list = append(list, name+"="+t.Env[name])
	}
	return list
}

// SettingMap returns the values of t.Settings by name.
func (t Transport) SettingMap() map[string]any {
	m := make(map[string]any, len(t.Settings))
	for _, s := range t.Settings {
		m[s.Name] = s.Value
	}
	return m
}

// HasRange reports whether the transport's own settings limit the ports that it uses, which the
// built-in transports do with port_range.
func (t Transport) HasRange() bool {
	return slices.ContainsFunc(t.Settings, func(s Setting) bool { return s.Name == "port_range" && s.Value != "" })
}

// Bound returns the address that the transport listens at instead of its host's, which the built-in
// ones have by bind; empty: its host's.
func (t Transport) Bound() string {
	at, _ := t.SettingMap()["bind"].(string)
	return at
}

// Route describes how a site reaches another one.
type Route struct {
	Site           string         // the other site's name, or "*"
	Prefer         []string       `hcl:"prefer"` // transports, best first; empty only beside Native
	Native         bool           // procs of the site use their own MPI with each other
	NativeAt       int            // number of Prefer that are preferred to the own MPI
	NativeUsual    bool           // Native is the default, not set in the file
	Direct         bool           `hcl:"direct"`      // procs may open links that pass the agents by
	DataPlane      []string       `hcl:"data_plane"`  // the only data planes allowed, best first; nil: any
	RequireTLS     bool           `hcl:"require_tls"` // only transports whose links are encrypted
	AllowPlain     bool           // the file says require_tls = false
	Closed         bool           // nothing may leave the machine unencrypted: see Site.closes
	Resume         bool           `hcl:"resume"` // broken links are made again and lose nothing
	Representation Representation `hcl:"representation"`
	Compress       *Compress      // compression of links, if both sites' routes have it; nil: none
	Precision      *Precision     // of numbers in messages, if both sites' routes have it; nil: full
	Pos            Pos
}

// Protocol has the values that a site submits at startup (IMPI ch.2, COLL command).
type Protocol struct {
	DataLen uint32 `hcl:"datalen"` // maximum user data bytes in a packet, at least 1
	AckMark uint32 `hcl:"ackmark"` // packets per PROTOACK, at least 1
	HiWater uint32 `hcl:"hiwater"` // packets under way per pair, at least AckMark
	// Unexpected is the maximum number of bytes of unexpected messages that a proc keeps, from
	// procs that run impi.
	Unexpected int64 `hcl:"unexpected"`

	TagUB     int32 `hcl:"tag_ub"`    // highest user tag, at least 32767
	XSize     int32 `hcl:"xsize"`     // crossover of short and long collectives in bytes; -1: default
	MaxLinear int32 `hcl:"maxlinear"` // crossover of linear and tree collectives in clients; -1: default

	// Collectives is how sites exchange messages in collective operations: "auto", "direct" for all
	// at once, or "tree". Measured is the file of round trips between sites that "auto" uses to
	// decide, or empty if there is none.
	Collectives string `hcl:"collectives"`
	Measured    string `hcl:"measured"` // absolute, or empty
	MeasuredPos Pos    // zero if Measured is empty

	Dialect Dialect  `hcl:"dialect"` // the same in all sites of a job; empty: Published
	IPv4    IPv4Form `hcl:"ipv4"`    // form of sent addresses; both are accepted; empty: IPv4Compatible
}

// Wait configures how procs wait for links.
type Wait struct {
	Auto bool          // spin as long as spinning has paid off
	Spin time.Duration // otherwise: spin this long, then sleep
}

// Log configures what the node writes on stderr.
type Log struct {
	Level  string `hcl:"level"`  // trace, debug, info, warn or error
	Format string `hcl:"format"` // text or json
	Trace  string `hcl:"trace"`  // absolute path of the packet trace, see TraceFile; empty: none
}

// Metrics configures where each node of the site serves metrics for Prometheus.
type Metrics struct {
	Listen netip.AddrPort `hcl:"listen"` // invalid: not served; port 0: any
	Calls  bool           `hcl:"calls"`  // include the time in MPI calls, which the procs then measure
	Pos    Pos
}

// Report configures where the head of each site writes a report about the job at its end.
type Report struct {
	Path string `hcl:"path"` // relative to Dir; %j is the job, %s the site, %p the process; empty: no report
	Dir  string
	Pos  Pos
}

// Name returns the path for a job and a site. If the path does not contain the site's name, but the
// file has several sites, the name is put before the extension, since their heads may share the
// folder.
func (r *Report) Name(job, site string, sites int) string {
	path := r.Path
	if sites > 1 && !strings.Contains(path, "%s") {
		ext := filepath.Ext(path)
		path = strings.TrimSuffix(path, ext) + "-%s" + ext
	}
	return absolute(r.Dir, strings.NewReplacer("%j", fileName(job), "%s", fileName(site), "%p", strconv.Itoa(os.Getpid()), "%%", "%").Replace(path))
}

// fileName makes s usable as part of a file's name.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == '/' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
	return cmp.Or(s, "_")
}

// ForWorld returns the job of a world that procs of j have spawned, without its sites. A report of
// it has another name than that of j.
func (j *Job) ForWorld(world string) *Job {
	r := j.Report
	if r.Path != "" && !strings.Contains(strings.ReplaceAll(r.Path, "%%", ""), "%j") {
		ext := filepath.Ext(r.Path)
		r.Path = strings.TrimSuffix(r.Path, ext) + "-" + inPattern(fileName(world)) + ext
	}
	return &Job{File: j.File, Dir: j.Dir, Complete: true, Report: r, source: j.source}
}

// UI configures where the head of the site serves the page of impi-node ui.
type UI struct {
	Listen netip.AddrPort `hcl:"listen"` // loopback address; invalid: not served; port 0: any
	Pos    Pos
}

// How a timeline shows short calls.
const (
	ShortMerge = "merge" // calls that follow each other closely are one entry
	ShortEach  = "each"  // each call is an entry
)

// Shorts lists the values of Trace.Short.
var Shorts = []string{ShortMerge, ShortEach}

// Trace configures what procs and nodes record while they run.
type Trace struct {
	Calls string `hcl:"calls"` // absolute path of the timeline of calls of MPI, see TraceFile; empty: none
	Short string `hcl:"short"` // what the timeline does with short calls, one of Shorts; empty: ShortMerge
	OTLP  string `hcl:"otlp"`  // URL of the collector to which each node of the site sends its spans; empty: none
}

// Limits are the maximum times of the steps of a job.
type Limits struct {
	Start time.Duration `hcl:"start"` // from the node's start until all sites are connected; plugins get half of it, at least 10 s
	Stop  time.Duration `hcl:"stop"`  // from the first order to end until procs are killed

	// Resume is the maximum time for a broken link to be made again.
	Resume time.Duration `hcl:"resume"`

	// Silence is the maximum time without data from another machine before that machine counts as
	// lost. It is 0 in jobs without a file, which use DefaultSilence.
	Silence time.Duration `hcl:"silence"`
}

// Site returns the site called name, which may be a spare one.
func (j *Job) Site(name string) (Site, bool) {
	all := j.All()
	i := slices.IndexFunc(all, func(s Site) bool { return s.Name == name })
	if i < 0 {
		return Site{}, false
	}
	return all[i], true
}

// All returns the sites, and then the spare sites.
func (j *Job) All() []Site { return slices.Concat(j.Sites, j.Spares) }

// LocalSites returns the own sites with a host whose address isLocal accepts, in ascending client
// rank, and then the spare ones.
func (j *Job) LocalSites(isLocal func(netip.Addr) bool) []Site {
	var local []Site
	for _, s := range j.All() {
		if !s.Foreign && s.isLocal(isLocal) {
			local = append(local, s)
		}
	}
	return local
}

func (s Site) isLocal(isLocal func(netip.Addr) bool) bool {
	return slices.ContainsFunc(s.Hosts, func(h Host) bool { return isLocal(h.Address) })
}

// Procs returns the number of procs on all of the site's hosts.
func (s Site) Procs() int {
	n := 0
	for _, h := range s.Hosts {
		n += h.Procs
	}
	return n
}

// CountsKnown reports whether the number of procs of every host of the site is known.
func (s Site) CountsKnown() bool {
	return !slices.ContainsFunc(s.Hosts, func(h Host) bool { return h.Procs == 0 })
}

// Transport returns the transport block with that name; false if the site has none.
func (s Site) Transport(name string) (Transport, bool) {
	i := slices.IndexFunc(s.Transports, func(t Transport) bool { return t.Name == name })
	if i < 0 {
		return Transport{}, false
	}
	return s.Transports[i], true
}

func (s Site) transportNames() []string {
	names := make([]string, len(s.Transports))
	for i, t := range s.Transports {
		names[i] = t.Name
	}
	return names
}
