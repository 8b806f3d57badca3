package wire

import "testing"

// TestLabelTable checks the numbers and sizes that all implementations share.
func TestLabelTable(t *testing.T) {
	want := []struct {
		hex   Label
		name  string
		scope Scope
		width int
	}{
		{0x1000, "C_VERSION", PerClient, 8}, {0x1100, "C_NHOSTS", PerClient, 4}, {0x1200, "C_NPROCS", PerClient, 4},
		{0x1300, "C_DATALEN", PerClient, 4}, {0x1400, "C_TAGUB", PerClient, 4}, {0x1500, "C_COLL_XSIZE", PerClient, 4},
		{0x1600, "C_COLL_MAXLINEAR", PerClient, 4}, {0x2000, "H_IPV6", PerHost, 16}, {0x2100, "H_PORT", PerHost, 4},
		{0x2200, "H_NPROCS", PerHost, 4}, {0x2300, "H_ACKMARK", PerHost, 4}, {0x2400, "H_HIWATER", PerHost, 4},
		{0x3000, "P_IPV6", PerProc, 16}, {0x3100, "P_PID", PerProc, 8},
	}
	have := StandardLabels()
	if len(have) != len(want) {
		t.Fatalf("%d labels, want %d", len(have), len(want))
	}
	for i, w := range want {
		h := have[i]
		if h.Label != w.hex || h.Name != w.name || h.Scope != w.scope || h.WidthIn(Published) != w.width {
			t.Errorf("label %d is %+v, want %+v", i, h, w)
		}
		if i > 0 && have[i-1].Label >= h.Label {
			t.Errorf("%v does not ascend", h.Label)
		}
		if h.Label.String() != w.name {
			t.Errorf("%v, want %s", h.Label, w.name)
		}
	}
}

func TestLabelDraft(t *testing.T) {
	for l, want := range map[Label]struct {
		name  string
		width int
	}{
		LabelDataLen: {"C_PKTLEN", 4}, LabelProcPID: {"P_PID", 4}, LabelProcIPv6: {"P_IPV6", 16},
	} {
		info, ok := l.Info()
		if !ok || info.NameIn(Draft) != want.name || info.WidthIn(Draft) != want.width {
			t.Errorf("%v: %s, %d bytes", l, info.NameIn(Draft), info.WidthIn(Draft))
		}
	}
}

func TestLabelOurs(t *testing.T) {
	for _, info := range StandardLabels() {
		if info.Label == LabelCards {
			t.Error("our label is among the standard's")
		}
	}
	if info, ok := LabelCards.Info(); !ok || LabelCards <= LabelProcPID || info.Width != 0 {
		t.Errorf("%+v must be known, above P_PID, of any size", info)
	}
	if _, ok := Label(0x1234).Info(); ok || Label(0x1234).String() != "label 0x1234" || Label(-1).String() != "label 0xffffffff" {
		t.Error("unknown labels are their numbers")
	}
	if PerClient.String() != "client" || PerHost.String() != "host" || PerProc.String() != "proc" {
		t.Error("scope names")
	}
}

func TestClientMask(t *testing.T) {
	m := ClientMask(0).With(0).With(31).With(5)
	if m.Len() != 3 || !m.Has(31) || m.Has(30) || m.Has(32) || m.Has(-1) || m.String() != "{0,5,31}" {
		t.Errorf("mask %x %v", uint32(m), m)
	}
	if MaskOf(0) != 0 || MaskOf(1) != 1 || MaskOf(32) != 1<<32-1 {
		t.Error("MaskOf")
	}
	defer func() {
		if recover() == nil {
			t.Error("client 32 has a bit")
		}
	}()
	m.With(32)
}

func TestVersionOrder(t *testing.T) {
	sorted := []Version{Version00, {0, 1}, PrivateVersion, {1, 0}, {1, 1}}
	for i, v := range sorted {
		for j, w := range sorted {
			if v.Less(w) != (i < j) {
				t.Errorf("%v < %v is %v", v, w, v.Less(w))
			}
		}
		if ParseVersion(AppendVersion(nil, v)) != v {
			t.Errorf("%v does not survive", v)
		}
	}
	if PrivateVersion.String() != "0.65537" {
		t.Errorf("private version is %v", PrivateVersion)
	}
}
