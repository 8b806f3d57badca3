package matrix

import (
	"errors"
	"strings"
	"testing"
)

// A job that ended well is no green cell unless its program has judged what it got and
// the bytes went the cell's way.
func TestProof(t *testing.T) {
	const (
		link    = "[DEBUG] impi-node: direct link: rank=0 peer=2 transport=tcp data_plane=ring reason=\"it is so\"\n"
		channel = "[DEBUG] impi-node: channel: from=0 to=1 transport=tcp data_plane=fd\n"
		right   = "[0] ring: 4 ranks, as it must be\n"
		near    = "[DEBUG] impi-node: direct link: rank=0 peer=1 transport=shm data_plane=peer-shm reason=x\n"
		none    = "[INFO]  impi-node: no direct link: packets go through the agents: from=0 to=2\n"
	)
	direct := Cell{"tcp", "ring", Direct, "ring", NoFault}
	agents := Cell{"tcp", "fd", Agents, "ring", NoFault}
	apart, byAgents := direct, agents
	apart.Mode, byAgents.Mode = DirectMachines, AgentsMachines
	for name, c := range map[string]struct {
		cell Cell
		log  string
		want string // empty: it is a proof
	}{
		"direct":               {direct, channel + link + right, ""},
		"agents":               {agents, channel + right, ""},
		"no result":            {direct, channel + link, "did not print"},
		"unknown program":      {Cell{"tcp", "ring", Direct, "sleep", NoFault}, channel + link + right, "did not print"},
		"no link":              {direct, channel + right, "no link was made"},
		"another plane":        {direct, link + strings.Replace(link, "=ring", "=fd", 1) + right, "the link of 0 and 2 is tcp by fd"},
		"another transport":    {direct, strings.Replace(link, "=tcp", "=unix", 1) + right, "the link of 0 and 2 is unix by ring"},
		"some by the agents":   {direct, link + none + right, "no direct link"},
		"no channel":           {agents, right, "no link was made"},
		"machines":             {apart, near + link + right, ""},
		"machines, agents":     {byAgents, channel + right, ""},
		"none within":          {apart, link + right, "no links within machines"},
		"none between":         {apart, near + right, "no links within machines, or none between"},
		"within as between":    {apart, link + strings.Replace(link, "peer=2", "peer=1", 1) + right, "the link of 0 and 1 is tcp by ring"},
		"between as within":    {apart, near + strings.Replace(near, "peer=1", "peer=2", 1) + right, "the link of 0 and 2 is shm by peer-shm"},
		"a link where none is": {agents, channel + link + right, "direct link"},
	} {
		err := c.cell.prove(c.log, Transport{ConfigName: "tcp"})
		if (err == nil) != (c.want == "") || err != nil && (!errors.Is(err, errUnproven) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unix := Cell{"unix", "fd", DirectMachines, "ring", NoFault}
	err := unix.prove(strings.Replace(near, "shm data_plane=peer-shm", "unix data_plane=fd", 1)+strings.Replace(link, "=ring", "=fd", 1)+right, Transport{ConfigName: "unix", Machine: true})
	if err != nil {
		t.Errorf("a transport that stays on its machine: %v", err)
	}
}

func TestEveryProgramHasLastWords(t *testing.T) {
	for _, p := range Programs {
		if successTexts[p] == "" {
			t.Errorf("%s: nobody knows what it prints when all is well", p)
		}
	}
}
