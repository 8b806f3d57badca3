package config

import "math"

type blockSpec struct {
	name     string
	label    string // meaning of the label; empty for a block without one
	example  string // label to suggest
	repeated bool   // may occur several times, with different labels if it has one
	attrs    []attrSpec
	blocks   []*blockSpec
	open     bool // takes any attribute; the transport's schema checks them
}

type attrSpec struct {
	name     string
	kind     kind
	required bool
}

// The values of attributes that this package checks by name.
var (
	logLevels       = []string{"trace", "debug", "info", "warn", "error"}
	logFormats      = []string{"text", "json"}
	dataPlanes      = []string{"fd", "peer-shm", "rdma", "ring", "stream", "grpc"}
	representations = []string{string(External32), string(NativeLE), string(NativeBE), string(NativeX86)}
	implementations = []string{string(LAM71)}
	algorithms      = []string{Zstd}
	roundings       = []string{Float}
)

const maxClients = 32 // IMPI ch.2: client_mask has 32 bits

var blockTransport = &blockSpec{name: "transport", label: "the transport's name", example: "tcp", repeated: true, attrs: []attrSpec{
	{name: "plugin", kind: text("the name of a plugin block or the plugin's file name", "impi-transport-x")},
	{name: "sha256", kind: checksum()},
	{name: "auto_mtls", kind: truth()},
	{name: "confine", kind: truth()},
	{name: "user_namespace", kind: truth()},
	{name: "env", kind: pluginEnv()},
}, blocks: []*blockSpec{{name: "config", open: true}}}

var blockPlugin = &blockSpec{name: "plugin", label: "the plugin's name", example: "ofi", repeated: true, attrs: []attrSpec{
	{name: "source", kind: pluginSource(), required: true},
	{name: "version", kind: versionConstraint()},
	{name: "keys", kind: publicKeys()},
	{name: "sha256", kind: checksums()},
}}

var blockRoute = &blockSpec{name: "route", label: `a site's name or "*"`, example: "*", repeated: true, attrs: []attrSpec{
	{name: "prefer", kind: words(`["unix", "tcp"]`)},
	{name: "direct", kind: truth()},
	{name: "data_plane", kind: wordsOf(dataPlanes)},
	{name: "require_tls", kind: truth()},
	{name: "resume", kind: truth()},
	{name: "representation", kind: oneOf(representations)},
}, blocks: []*blockSpec{blockCompress, blockPrecision}}

var blockCompress = &blockSpec{name: "compress", attrs: []attrSpec{
	{name: "algorithm", kind: oneOf(algorithms)},
	{name: "level", kind: integer(1, 19)},
	{name: "min", kind: integer(64, 1<<20)},
}}

var blockPrecision = &blockSpec{name: "precision", attrs: []attrSpec{
	{name: "double", kind: oneOf(roundings), required: true},
}}

var blockHost = &blockSpec{name: "host", repeated: true, attrs: []attrSpec{
	{name: "address", kind: address(), required: true},
	{name: "procs", kind: procs(), required: true},
	{name: "port", kind: integer(0, math.MaxUint16)},
	{name: "board", kind: truth()},
}}

var blockProgram = &blockSpec{name: "program", attrs: []attrSpec{
	{name: "command", kind: words(`["./ring", "--rounds", "10"]`)},
	{name: "dir", kind: text("a folder", ".")},
	{name: "env", kind: stringMap()},
	{name: "prefix_output", kind: truth()},
	{name: "stdin", kind: integer(-1, math.MaxInt32)},
	{name: "bind", kind: oneOf(Bindings)},
}}

var blockProtocol = &blockSpec{name: "protocol", attrs: []attrSpec{
	{name: "datalen", kind: integer(1, math.MaxUint32)},
	{name: "ackmark", kind: integer(1, math.MaxUint32)},
	{name: "hiwater", kind: integer(1, math.MaxUint32)},
	{name: "unexpected", kind: integer(64<<10, 1<<60)},
	{name: "tag_ub", kind: integer(32767, math.MaxInt32)},
	{name: "xsize", kind: integer(-1, math.MaxInt32)},
	{name: "maxlinear", kind: integer(-1, math.MaxInt32)},
	{name: "collectives", kind: oneOf(collectivesChoices)},
	{name: "measured", kind: text("a file that impi-node links -measure -keep writes", "measured.json")},
	{name: "dialect", kind: oneOf(dialects)},
	{name: "ipv4", kind: oneOf(ipv4Forms)},
	{name: "versions", kind: versions()},
	{name: "omit", kind: wordsOf(optionalLabels)},
}}

var blockWait = &blockSpec{name: "wait", attrs: []attrSpec{
	{name: "spin", kind: spin()},
	{name: "progress", kind: progress()},
}}

var blockLog = &blockSpec{name: "log", attrs: []attrSpec{
	{name: "level", kind: oneOf(logLevels)},
	{name: "format", kind: oneOf(logFormats)},
	{name: "trace", kind: text("a file name with %r for the rank", "packets-%r.txt")},
}}

var blockMetrics = &blockSpec{name: "metrics", attrs: []attrSpec{
	{name: "listen", kind: metricsAt()},
	{name: "calls", kind: truth()},
}}

var blockUI = &blockSpec{name: "ui", attrs: []attrSpec{{name: "listen", kind: loopbackAt(), required: true}}}

var blockTrace = &blockSpec{name: "trace", attrs: []attrSpec{
	{name: "calls", kind: text("a file name with %r for the rank", "calls-%r.json")},
	{name: "short", kind: oneOf(Shorts)},
	{name: "otlp", kind: collectorAt()},
}}

var blockAuth = &blockSpec{name: "auth", label: `"key" or "none"`, example: "key", repeated: true, attrs: []attrSpec{
	{name: "file", kind: text("the key's file name", "job.key")},
	{name: "env", kind: text("an environment variable's name", "IMPI_AUTH_KEY")},
}}

var blockEmbeddedServer = &blockSpec{name: "embedded_server", attrs: []attrSpec{
	{name: "listen", kind: endpoint(0)},
	{name: "clients", kind: integer(1, maxClients)},
	{name: "require_tls", kind: truth()},
}}

// sharedBlocks are blocks that may be at the top of the file, for all sites, or in a site, for that
// one.
var sharedBlocks = []*blockSpec{
	blockHost, blockProgram, blockTransport, blockRoute, blockProtocol, blockWait, blockLog, blockMetrics, blockUI, blockTrace, blockSpawn, blockNames,
}

var blockSite = &blockSpec{name: "site", label: "the site's name", example: "alpha", repeated: true, attrs: []attrSpec{
	{name: "client", kind: integer(0, maxClients-1)}, // required except for spare sites: see checkSpare
	{name: "spare", kind: truth()},
	{name: "foreign", kind: truth()},
	{name: "implementation", kind: oneOf(implementations)},
	{name: "representation", kind: oneOf(representations)},
	{name: "channels_from", kind: networks()},
	{name: "hosts", kind: hostList()},
	{name: "procs", kind: procs()},
	{name: "server", kind: endpoint(1)},
	{name: "servers", kind: endpoints(1)},
	{name: "server_foreign", kind: truth()},
	{name: "require_tls", kind: truth()},
	{name: "head", kind: endpoint(1)},
	{name: "ports", kind: portRange()},
	{name: "network", kind: network()},
}, blocks: append([]*blockSpec{blockEmbeddedServer, blockAuth, blockLaunch, blockNative}, sharedBlocks...)}

var blockJob = &blockSpec{name: "job", attrs: []attrSpec{
	{name: "server", kind: endpoint(1)},
	{name: "servers", kind: endpoints(1)},
	{name: "server_foreign", kind: truth()},
	{name: "require_tls", kind: truth()},
	{name: "timeout", kind: duration("60s")},
	{name: "survive", kind: truth()},
}, blocks: []*blockSpec{blockEmbeddedServer, blockAuth}}

var blockLimits = &blockSpec{name: "limits", attrs: []attrSpec{
	{name: "start", kind: duration("60s")},
	{name: "stop", kind: duration("10s")},
	{name: "resume", kind: duration("30s")},
	{name: "silence", kind: silence()},
}}

var blockReport = &blockSpec{name: "report", attrs: []attrSpec{{name: "path", kind: text("a file name", "job-%j.html"), required: true}}}

// fileSpec describes a whole file. A schema of hcldec would do for the shape of blocks, but its
// faults are not those of this package: they name no attribute that was probably meant, and no
// example.
var fileSpec = &blockSpec{attrs: []attrSpec{
	{name: "plugin_dir", kind: text("a folder", "plugins")},
	{name: "hosts", kind: hostList()},
	{name: "procs", kind: procs()},
	{name: "ports", kind: portRange()},
}, blocks: append([]*blockSpec{blockJob, blockSite, blockLimits, blockReport, blockPlugin}, sharedBlocks...)}

func (s *blockSpec) attr(name string) (attrSpec, bool) {
	for _, a := range s.attrs {
		if a.name == name {
			return a, true
		}
	}
	return attrSpec{}, false
}

func (s *blockSpec) block(name string) *blockSpec {
	for _, b := range s.blocks {
		if b.name == name {
			return b
		}
	}
	return nil
}

func (s *blockSpec) names() []string { return append(s.attrNames(), s.blockNames()...) }

func (s *blockSpec) attrNames() (names []string) {
	for _, a := range s.attrs {
		names = append(names, a.name)
	}
	return names
}

func (s *blockSpec) blockNames() (names []string) {
	for _, b := range s.blocks {
		names = append(names, b.name)
	}
	return names
}

// nearest returns the name in s that was probably meant, one of the same sort first: host and
// hosts are a block and an attribute. what is "block" or "attribute".
func (s *blockSpec) nearest(name, what string) string {
	same, others := s.attrNames(), s.blockNames()
	if what == "block" {
		same, others = others, same
	}
	if near := nearest(name, same); near != "" {
		return near
	}
	return nearest(name, others)
}

// home returns the kinds of blocks that may have name, for the fault about a name that is in
// another one.
func home(name string) []string {
	var found []string
	seen := map[string]bool{}
	var walk func(*blockSpec)
	walk = func(s *blockSpec) {
		_, isAttr := s.attr(name)
		if (isAttr || s.block(name) != nil) && !seen[s.name] {
			seen[s.name] = true
			found = append(found, s.name)
		}
		for _, b := range s.blocks {
			walk(b)
		}
	}
	walk(fileSpec)
	return found
}
