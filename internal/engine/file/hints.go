package file

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/openimpi/impi/internal/engine/proc"
)

// The hints that are understood (MPI-4.1, 14.2.8), with the names that programs use for ROMIO, too.
const (
	hintNodes      = "cb_nodes"
	hintConfig     = "cb_config_list"
	hintBuffer     = "cb_buffer_size"
	hintStripe     = "striping_unit"
	hintReadAll    = "romio_cb_read"
	hintWriteAll   = "romio_cb_write"
	hintSieveRead  = "romio_ds_read"
	hintSieveWrite = "romio_ds_write"
	hintReadSize   = "ind_rd_buffer_size"
	hintWriteSize  = "ind_wr_buffer_size"
	hintNoIndep    = "romio_no_indep_rw"
	hintAggregates = "romio_aggregator_list" // only reported
)

type choice int64

const (
	automatic choice = iota
	enable
	disable
)

var choices = [...]string{"automatic", "enable", "disable"}

type hints struct {
	buffer, readSize, writeSize              int64
	stripe                                   int64 // 0: the file system's default
	readAll, writeAll, sieveRead, sieveWrite choice
	onlyTogether                             bool // romio_no_indep_rw
}

const maxBuffer = 1 << 30

func (fs *fileSystem) defaults() hints {
	h := hints{buffer: 4 << 20, readSize: 4 << 20, writeSize: 1 << 20}
	if fs.remote {
		h.buffer = 16 << 20
	}
	return h
}

// take sets the hints for which an info object has valid values; all others are ignored, as MPI
// wants it.
func (h *hints) take(info *proc.Info) {
	for key, n := range map[string]*int64{hintBuffer: &h.buffer, hintStripe: &h.stripe, hintReadSize: &h.readSize, hintWriteSize: &h.writeSize} {
		if v, err := strconv.ParseInt(valueOf(info, key), 10, 64); err == nil && v > 0 {
			*n = min(v, maxBuffer)
		}
	}
	for key, c := range map[string]*choice{hintReadAll: &h.readAll, hintWriteAll: &h.writeAll, hintSieveRead: &h.sieveRead, hintSieveWrite: &h.sieveWrite} {
		for i, name := range choices {
			if strings.EqualFold(valueOf(info, key), name) {
				*c = choice(i)
			}
		}
	}
	switch strings.ToLower(valueOf(info, hintNoIndep)) {
	case "true":
		h.onlyTogether = true
	case "false":
		h.onlyTogether = false
	}
}

func valueOf(info *proc.Info, key string) string {
	v, _, _ := info.Get(key)
	return strings.TrimSpace(v)
}

func (h *hints) tell(info *proc.Info) error {
	pairs := []proc.InfoPair{
		{Key: hintBuffer, Value: strconv.FormatInt(h.buffer, 10)}, {Key: hintReadSize, Value: strconv.FormatInt(h.readSize, 10)},
		{Key: hintWriteSize, Value: strconv.FormatInt(h.writeSize, 10)}, {Key: hintStripe, Value: strconv.FormatInt(h.stripe, 10)},
		{Key: hintReadAll, Value: choices[h.readAll]}, {Key: hintWriteAll, Value: choices[h.writeAll]},
		{Key: hintSieveRead, Value: choices[h.sieveRead]}, {Key: hintSieveWrite, Value: choices[h.sieveWrite]},
		{Key: hintNoIndep, Value: strconv.FormatBool(h.onlyTogether)},
	}
	for _, p := range pairs {
		if err := info.Set(p.Key, p.Value); err != nil {
			return err
		}
	}
	return nil
}

// aggregators chooses the members that read and write for all of them in collective operations, by
// the members' hosts: one of each host, or as many as cb_config_list allows; more if there is no
// such list and cb_nodes wants more, and no more than cb_nodes in all. They are dealt out host by
// host, so that few are on different hosts. names are those of the hosts, for the list.
func aggregators(hosts []string, names map[string]string, nodes int, config string) (chosen []int) {
	var order []string
	members := map[string][]int{}
	for rank, h := range hosts {
		if members[h] == nil {
			order = append(order, h)
		}
		members[h] = append(members[h], rank)
	}
	most := nodes
	if most <= 0 {
		most = len(hosts)
	}
	for turn := range len(hosts) {
		for _, h := range order {
			limit := perHost(names[h], config)
			if limit < 0 {
				limit = 1
				if nodes > len(order) {
					limit = nodes
				}
			}
			if turn < min(limit, len(members[h])) && len(chosen) < most {
				chosen = append(chosen, members[h][turn])
			}
		}
	}
	if len(chosen) == 0 {
		chosen = []int{0} // at least one member must be an aggregator
	}
	return chosen
}

// perHost returns how many aggregators a cb_config_list allows a host: the number of the first
// entry host:n, host, *:n, host:* or *:* that names it. It is 0 for a host that is not in the list,
// and -1 if there is no list that can be understood.
func perHost(host, config string) int {
	if config == "" {
		return -1
	}
	limit, named := 0, false
	for i := strings.Split(config, ","); len(i) > 0; i = i[1:] {
		name, n, has := strings.Cut(strings.TrimSpace(i[0]), ":")
		count := 1
		switch {
		case has && n == "*":
			count = 1 << 30
		case has:
			var err error
			if count, err = strconv.Atoi(n); err != nil || count < 0 {
				return -1
			}
		}
		if !named && (name == "*" || host != "" && strings.EqualFold(name, host)) {
			limit, named = count, true
		}
	}
	return limit
}

func rankList(ranks []int) string {
	text := strings.Trim(strings.ReplaceAll(fmt.Sprint(ranks), " ", ","), "[]")
	return text[:min(len(text), proc.MaxInfoValue)]
}
