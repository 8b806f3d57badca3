package bootstrap

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
)

// Verb is the command of impi-node that a first rank starts, and OrderFD the descriptor of the
// socket by which they communicate.
const (
	Verb    = "pmi"
	OrderFD = 3
)

// version is that of what first ranks and nodes say to each other. Program and impi-node may come
// from different builds.
const version = 1

// Bounds of what is read.
const (
	maxAddress = 1 << 10  // bytes of a NodeAddress
	maxLine    = 64 << 20 // of a message to a node: a NodeAddress for each block
)

// Block is some ranks in a row that are on one machine.
type Block struct {
	First int `json:"first"`
	Procs int `json:"procs"`
}

// Blocks returns the blocks of ranks. machines has the machine of each rank.
func Blocks(machines []int) (blocks []Block) {
	for rank, m := range machines {
		if rank > 0 && m == machines[rank-1] {
			blocks[len(blocks)-1].Procs++
			continue
		}
		blocks = append(blocks, Block{rank, 1})
	}
	return blocks
}

// SurviveVariable, if it is 1, makes the job continue without procs that are lost.
const SurviveVariable = "IMPI_SURVIVE"

func survive(value string) (bool, error) {
	switch value {
	case "", "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, fmt.Errorf("%s=%.40q: it can be 1, for a job that goes on without procs that are lost, or 0", SurviveVariable, value)
}

// Order is the first message of a first rank to its node.
type Order struct {
	Version int     `json:"version"`
	Blocks  []Block `json:"blocks"`
	Self    int     `json:"self"`              // the node's block
	Machine string  `json:"machine,omitempty"` // the process manager's name of the node's machine
}

// NodeAddress describes how to reach the node of a block: the node's answer to the Order, and what
// its first rank publishes.
type NodeAddress struct {
	Socket  string     `json:"socket"`            // abstract, for the block's procs
	Address netip.Addr `json:"address,omitzero"`  // of the machine, where there are several blocks
	Head    string     `json:"head,omitempty"`    // "ip:port" where the head accepts the other nodes
	Secret  string     `json:"secret,omitempty"`  // of the head, for the other nodes
	Server  string     `json:"server,omitempty"`  // "ip:port" of the job's server, which the head runs
	Survive bool       `json:"survive,omitempty"` // the job continues without procs that are lost

	Problem string `json:"problem,omitempty"` // why the node cannot do its work; all else is empty
}

// Encode returns a place in one word, as PMI requires for values.
func (p *NodeAddress) Encode() (string, error) {
	b, err := json.Marshal(p)
	return string(b), err
}

// DecodeNodeAddress parses the address that Encode has written, for the node of a block.
func DecodeNodeAddress(text string, block, blocks int) (p NodeAddress, err error) {
	if len(text) > maxAddress {
		return p, fmt.Errorf("the node address of block %d has %d bytes, more than %d", block, len(text), maxAddress)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("the node address of block %d, %.80q, cannot be read: %w", block, text, err)
	}
	if blocks > 1 && block == 0 {
		_, head := netip.ParseAddrPort(p.Head)
		_, server := netip.ParseAddrPort(p.Server)
		if head != nil || server != nil || p.Secret == "" {
			return p, fmt.Errorf("the first block does not say where the head of the job and the server are, but %.80q and %.80q", p.Head, p.Server)
		}
	}
	if p.Socket == "" || blocks > 1 && !p.Address.IsValid() {
		return p, fmt.Errorf("the node address of block %d lacks a socket or an address: %.80q", block, text)
	}
	return p, nil
}

// outcome is a node's last message.
type outcome struct {
	Status int `json:"status"`
}

// line is either end of the socket between a first rank and its node: JSON in lines. Not
// gRPC: it is one question and its answers, and the first rank is a program of the user's.
type line struct {
	io.ReadWriteCloser
	in *bufio.Reader
}

func newLine(c io.ReadWriteCloser) *line { return &line{c, bufio.NewReader(c)} }

func (l *line) send(what any) error { return json.NewEncoder(l).Encode(what) }

func (l *line) receive(what any, most int) error {
	var text []byte
	for {
		part, err := l.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > most:
			return fmt.Errorf("a line has more than %d bytes", most)
		case err == nil:
			return json.Unmarshal(text, what)
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}
