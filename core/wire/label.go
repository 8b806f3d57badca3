package wire

import "fmt"

// Label names what a COLL command carries.
type Label int32

// The labels of IMPI 0.0, and the first of ours.
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

	// LabelCards is sent when every client lists PrivateVersion, and never
	// otherwise: for each client a job token, then a business card for each proc,
	// each behind its length as a Uint4.
	LabelCards Label = 0x49000000
)

// Scope tells what a label has one value of.
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

// LabelInfo says how a label's values look.
type LabelInfo struct {
	Label    Label
	Name     string // in the published standard
	OldName  string // in the draft, where it differs
	Scope    Scope
	Width    int  // bytes of a value in the published dialect; 0 for values that vary
	OldWidth int  // in the draft, where it differs
	Optional bool // a client in the field leaves it out
}

// WidthIn gives the bytes of one value in dialect d.
func (i LabelInfo) WidthIn(d Dialect) int {
	if d == Draft && i.OldWidth != 0 {
		return i.OldWidth
	}
	return i.Width
}

// NameIn gives the label's name in dialect d.
func (i LabelInfo) NameIn(d Dialect) string {
	if d == Draft && i.OldName != "" {
		return i.OldName
	}
	return i.Name
}

// labels is ascending, which is the order in which a client sends them.
// IMPI ch.2, Collection of startup information.
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
}

// NumLabels is how many labels IMPI 0.0 has, without ours.
const NumLabels = len(labels) - 1

// StandardLabels gives the labels of IMPI 0.0 in ascending order.
func StandardLabels() []LabelInfo {
	return append([]LabelInfo(nil), labels[:NumLabels]...)
}

// Info describes l if it is known.
func (l Label) Info() (info LabelInfo, known bool) {
	for i := range labels {
		if labels[i].Label == l {
			return labels[i], true
		}
	}
	return LabelInfo{Label: l}, false
}

// LabelCalled finds a label by the name that it has in the published standard.
func LabelCalled(name string) (Label, bool) {
	for i := range labels {
		if labels[i].Name == name {
			return labels[i].Label, true
		}
	}
	return NoLabel, false
}

// String gives the standard's name, or the number.
func (l Label) String() string {
	if info, ok := l.Info(); ok {
		return info.Name
	}
	return fmt.Sprintf("label 0x%x", uint32(l))
}
