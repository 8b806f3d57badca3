package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/go-plugin"

	"github.com/openimpi/impi/plugins/sdk/proto"
)

// offer is the variable in which go-plugin lists the versions that the node speaks.
const offer = "PLUGIN_PROTOCOL_VERSIONS"

// tolerated is the highest version that a handshake may state. A plugin of the next release
// that always states its highest version may still speak ours, which its Info says.
const tolerated = proto.Version + 1

// acceptable are the versions that go-plugin accepts in a handshake.
func acceptable() map[int]plugin.PluginSet {
	sets := map[int]plugin.PluginSet{tolerated: {proto.ServiceName: grpcClient{}}}
	for _, v := range proto.Versions() {
		sets[v] = plugin.PluginSet{proto.ServiceName: grpcClient{}}
	}
	return sets
}

// offering replaces go-plugin's list of versions, which has all acceptable ones, by those
// that this node speaks.
func offering(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, offer+"=") })
	return append(env, offer+"="+spoken(","))
}

func spoken(between string) string {
	var words []string
	for _, v := range proto.Versions() {
		words = append(words, strconv.Itoa(v))
	}
	return strings.Join(words, between)
}

// judgeVersion checks the version in a handshake. It returns true, and completes e, if the version
// is wrong.
func judgeVersion(e *Error, text string) bool {
	v, err := strconv.Atoi(text)
	switch {
	case err != nil:
		e.mismatch(fmt.Sprintf("%.20q", text), "it is no impi transport plugin, or is broken: ask its vendor")
	case v > tolerated:
		e.mismatch(text, newerRemedy)
	case v < proto.Oldest:
		e.mismatch(text, fmt.Sprintf("the plugin is too old: install a release of it that speaks version %d or later, or rebuild it with the current sdk", proto.Oldest))
	default:
		return false
	}
	return true
}

const newerRemedy = "the plugin is newer than this node: update impi-node, or install an older release of the plugin"

// mismatch completes e for a plugin that shares no version with the node.
func (e *Error) mismatch(theirs, remedy string) {
	e.Kind, e.Remedy = ErrVersion, remedy
	e.Problem = fmt.Sprintf("speaks version %s of the transport protocol, this node %s", theirs, spoken(" and "))
}

// agree determines the version to use with a plugin from the one in its handshake and the
// list in its Info.
func (i *instance) agree(shaken int, speaks []uint32) error {
	i.protocol, i.newest = shaken, shaken
	for _, v := range speaks {
		i.newest = max(i.newest, int(min(v, maxShownVersion)))
	}
	if shaken <= proto.Version {
		return nil
	}
	if i.protocol = proto.Common(speaks); i.protocol > 0 {
		return nil
	}
	e := &Error{Plugin: i.cfg.Name, Path: i.path}
	e.mismatch(strconv.Itoa(shaken), newerRemedy)
	return e
}

const maxShownVersion = 9999

func lacks(version int) (names []string) {
	for _, a := range proto.Lacking(version) {
		names = append(names, a.Name)
	}
	return names
}

func (i *instance) warnOfAge() {
	if missing := proto.Lacking(i.protocol); len(missing) > 0 {
		why := make([]string, len(missing))
		for n, a := range missing {
			why[n] = a.Name + ": " + a.Without
		}
		i.log.Warn("plugin speaks an older version of the protocol than this node", "plugin", i.protocol, "node", proto.Version,
			"it_lacks", strings.Join(why, "; "), "remedy", "install a newer release of it")
	}
	if i.newest > proto.Version {
		i.log.Warn("plugin speaks a newer version of the protocol than this node", "plugin", i.newest, "node", proto.Version,
			"spoken", i.protocol, "remedy", "update impi-node to have what the newer version added")
	}
}

// health asks the transport for its Health. problem is empty if there is none, or if the
// plugin's version has no Health.
func (i *instance) health(ctx context.Context) (problem string, err error) {
	if i.protocol < 2 {
		return "", nil
	}
	answer, err := i.rpc.Health(ctx, &proto.HealthRequest{Call: i.call(ctx), LogLevel: levelName(i.cfg.Logger)})
	if err != nil {
		return "", i.broken(ctx, "Health", err)
	}
	problem = answer.GetProblem()
	return problem[:min(len(problem), maxReason)], nil
}

var errNextProcess = errors.New("it speaks version 1 of the plugin protocol: its next process has the level, which impi-node plugins reload starts")

// TellLogLevel sends the plugin the present level of the Logger. A process that starts receives the
// level anyway.
func (p *Plugin) TellLogLevel(ctx context.Context) error {
	p.mu.Lock()
	inst := p.cur
	p.mu.Unlock()
	switch {
	case inst == nil:
		return nil
	case inst.protocol < 2:
		return errNextProcess
	}
	problem, err := inst.health(ctx)
	if err == nil {
		p.felt(inst, problem)
	}
	return err
}
