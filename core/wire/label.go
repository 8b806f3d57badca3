package wire

import "fmt"

// Label names the data of a COLL command (IMPI ch.2, Collection of startup information).
type Label int32

// The labels of IMPI 0.0, and the first extension label.
const (
	NoLabel         Label = 0x0000 // reserved
	LabelVersion    Label = 0x1000
	LabelNHosts     Label = 0x1100
	LabelNProcs     Label = 0x1200
	LabelDataLen    Label = 0x1300
	LabelTagUB      Label = 0x1400
	LabelCollXSize  Label = 0x1500
	LabelMaxLinear  Label = 0x1600
	LabelHostIPv6   Label = 0x2000
	LabelHostPort   Label = 0x2100
	LabelHostNProcs Label = 0x2200
	LabelAckMark    Label = 0x2300
	LabelHiWater    Label = 0x2400
	LabelProcIPv6   Label = 0x3000
	LabelProcPID    Label = 0x3100

	// LabelCards is sent if every client lists PrivateVersion, and never otherwise. A
	// client's value is its job token and then the business card of each of its procs, each
	// preceded by its length as a Uint4.
	LabelCards Label = 0x49000000

	// LabelLost is sent by the server alone, after DONE, if every client lists LostVersion: the
	// mask has a client whose connection the server has lost, and the value describes how. The job
	// continues.
	LabelLost Label = 0x49000001
)

// Scope is what a label has one value for: each client, host or proc.
type Scope uint8

// The scopes.
const (
	PerClient Scope = iota
	PerHost
	PerProc
)

// String names what the scope counts.
func (s Scope) String() string {
	return [...]string{"client", "host", "proc"}[s]
}

// LabelInfo describes a label's values.
type LabelInfo struct {
	Label    Label
	Name     string // in the published standard
	OldName  string // in the draft, if different
	Scope    Scope
	Width    int  // bytes of a value in the published dialect; 0 if they vary
	OldWidth int  // in the draft, if different
	Optional bool // some implementations in use do not send it
}

// WidthIn returns the bytes of one value in dialect d, 0 if they vary.
func (i LabelInfo) WidthIn(d Dialect) int {
	if d == Draft && i.OldWidth != 0 {
		return i.OldWidth
	}
	return i.Width
}

// NameIn returns the label's name in dialect d.
func (i LabelInfo) NameIn(d Dialect) string {
	if d == Draft && i.OldName != "" {
		return i.OldName
	}
	return i.Name
}

// labels is in ascending order, in which a client sends them (IMPI ch.2, Collection of
// startup information).
var labels = [...]LabelInfo{
	{Label: LabelVersion, Name: "C_VERSION", Scope: PerClient, Width: VersionSize, Optional: true},
	{Label: LabelNHosts, Name: "C_NHOSTS", Scope: PerClient, Width: 4},
	{Label: LabelNProcs, Name: "C_NPROCS", Scope: PerClient, Width: 4},
	{Label: LabelDataLen, Name: "C_DATALEN", OldName: "C_PKTLEN", Scope: PerClient, Width: 4, Optional: true},
	{Label: LabelTagUB, Name: "C_TAGUB", Scope: PerClient, Width: 4, Optional: true},
	{Label: LabelCollXSize, Name: "C_COLL_XSIZE", Scope: PerClient, Width: 4, Optional: true},
	{Label: LabelMaxLinear, Name: "C_COLL_MAXLINEAR", Scope: PerClient, Width: 4, Optional: true},
	{Label: LabelHostIPv6, Name: "H_IPV6", Scope: PerHost, Width: 16},
	{Label: LabelHostPort, Name: "H_PORT", Scope: PerHost, Width: 4},
	{Label: LabelHostNProcs, Name: "H_NPROCS", Scope: PerHost, Width: 4},
	{Label: LabelAckMark, Name: "H_ACKMARK", Scope: PerHost, Width: 4, Optional: true},
	{Label: LabelHiWater, Name: "H_HIWATER", Scope: PerHost, Width: 4, Optional: true},
	{Label: LabelProcIPv6, Name: "P_IPV6", Scope: PerProc, Width: 16},
	{Label: LabelProcPID, Name: "P_PID", Scope: PerProc, Width: 8, OldWidth: 4},
	{Label: LabelCards, Name: "X_CARDS", Scope: PerClient, Optional: true},
	{Label: LabelLost, Name: "X_LOST", Scope: PerClient, Optional: true},
}

// NumLabels is the number of labels of IMPI 0.0, without extension labels.
const NumLabels = len(labels) - 2

// StandardLabels returns the labels of IMPI 0.0 in ascending order.
func StandardLabels() []LabelInfo {
	return append([]LabelInfo(nil), labels[:NumLabels]...)
}

// Info returns the description of l; known is false if there is none.
func (l Label) Info() (info LabelInfo, known bool) {
	for i := range labels {
		if labels[i].Label == l {
			return labels[i], true
		}
	}
	return LabelInfo{Label: l}, false
}

// LabelCalled returns the label with this name in the published standard.
func LabelCalled(name string) (Label, bool) {
	for i := range labels {
		if labels[i].Name == name {
			return labels[i].Label, true
		}
	}
	return NoLabel, false
}

// String returns the standard's name, or the number if the label is not known.
func (l Label) String() string {
	if info, ok := l.Info(); ok {
		return info.Name
	}
	return fmt.Sprintf("label 0x%x", uint32(l))
}
