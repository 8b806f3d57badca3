package firewall

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/openimpi/impi/config"
)

// namesRules admit the hosts of all sites to the servers of names that jobs share.
func namesRules(job *config.Job) (list []Rule) {
	for _, s := range job.All() {
		if s.Foreign || !s.Names.Shared() {
			continue
		}
		at := cmp.Or(s.Names.ServerName, s.Names.Server.Addr().String())
		r := Rule{Host: at, Proto: "tcp", Ports: port(s.Names.Server.Port(), s), For: "the name server"}
		i := slices.IndexFunc(list, func(x Rule) bool { return x.Host == r.Host && x.Ports == r.Ports })
		if i < 0 {
			i, list = len(list), append(list, r)
		}
		for _, from := range hosts(s) {
			if !slices.Contains(list[i].From, from) {
				list[i].From = append(list[i].From, from)
			}
		}
	}
	return list
}

const (
	sshPort = "22"
	// sshRemedy is about a port that the file does not have.
	sshRemedy = "it is port 22, unless the configuration of ssh on the hosts that start it says otherwise"
)

// sshRule admits those that start the node of a host, which is not the site's first: the first one,
// and where that does not start all by itself, others that come before.
func sshRule(s config.Site, i int) []Rule {
	if s.Launch == nil || s.Launch.Engine != config.LaunchSSH || i == 0 {
		return nil
	}
	starters := 1
	if len(s.Hosts)-1 > s.Launch.Fanout {
		starters = i
	}
	r := Rule{Site: s.Name, Host: s.Hosts[i].String(), Proto: "tcp", Ports: sshPort, For: "ssh, by which its node is started", Remedy: sshRemedy}
	if p := sshOption(s.Launch.Options); p != "" {
		r.Ports, r.Remedy = p, ""
	}
	for _, h := range s.Hosts[:starters] {
		r.From = append(r.From, h.String())
	}
	return some(r)
}

// sshOption returns the port that options of ssh name, the first one as ssh does; empty: none.
func sshOption(options []string) string {
	for i, o := range options {
		next := ""
		if i+1 < len(options) {
			next = options[i+1]
		}
		switch {
		case o == "-p":
			o = next
		case strings.HasPrefix(o, "-p"):
			o = o[2:]
		case o == "-o":
			o = ofPort(next)
		default:
			o = ofPort(strings.TrimPrefix(o, "-o"))
		}
		if n, err := strconv.ParseUint(o, 10, 16); err == nil && n > 0 {
			return o
		}
	}
	return ""
}

// ofPort returns the value of an option such as Port=2222; empty: it is another one.
func ofPort(option string) string {
	name, value, _ := strings.Cut(option, "=")
	if !strings.EqualFold(strings.TrimSpace(name), "port") {
		return ""
	}
	return strings.TrimSpace(value)
}

// boundNative is what bounds the ports of the MPIs that sites may have of their own.
const boundNative = `impi does not choose these ports; variables in the environment of impi-node do, of Open MPI: OMPI_MCA_btl_tcp_port_min_v4=7900 with OMPI_MCA_btl_tcp_port_range_v4=100 for its procs, OMPI_MCA_oob_tcp_dynamic_ipv4_ports=8000-8099 for its daemons, ` +
	`and of MPICH: MPIR_CVAR_CH3_PORT_RANGE=7900:7999; what goes by another network needs what that takes`

// nativeRule admits what the site's own MPI connects between its hosts.
func nativeRule(s config.Site, h config.Host) []Rule {
	if s.Native == nil {
		return nil
	}
	return some(Rule{Site: s.Name, Host: h.String(), Proto: "tcp", Ports: anyPort, From: others(s, h), For: "the site's own MPI", Remedy: boundNative})
}
