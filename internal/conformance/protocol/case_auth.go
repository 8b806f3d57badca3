package protocol

const refAuth = "ch. 2, Authentication"

func init() {
	register("startup",
		Case{ID: "IMPI-2-AUTH-01", Level: Must, Needs: Client, Run: func(t *T) { authentication(t, Auth{None: true}, authNone) }, Reference: refAuth,
			Expect: "A client without key opens with AUTH, mask 1; when the server picks NONE, IMPI follows at once."},
		Case{ID: "IMPI-2-AUTH-02", Level: Must, Needs: Client, Run: func(t *T) { authentication(t, Auth{Key: aKey}, authKey) }, Reference: refAuth,
			Expect: "A client that has only a key opens with AUTH, mask 2; when the server picks KEY, the key follows, 8 bytes big-endian without a header, and then IMPI."},
		Case{ID: "IMPI-2-AUTH-03", Level: Must, Needs: Client, Run: func(t *T) { authentication(t, Auth{None: true, Key: aKey}, authNone) }, Reference: refAuth,
			Expect: "A client that offers both sends no key when the server picks NONE."},
		Case{ID: "IMPI-2-AUTH-04", Level: Must, Needs: Client, Run: func(t *T) { authentication(t, Auth{None: true, Key: aKey}, authKey) }, Reference: refAuth,
			Expect: "A client that offers both sends its key when the server picks KEY."},
		Case{ID: "IMPI-2-AUTH-05", Level: Should, Needs: Client, Run: lengthInAnswer, Reference: refAuth,
			Expect: "The length in the server's answer means nothing for NONE and KEY: the client waits for no further bytes when it is 8."},
		Case{ID: "IMPI-2-AUTH-06", Level: Must, Needs: Client, Run: func(t *T) { wrongChoice(t, authKey) }, Reference: refAuth,
			Expect: "A client gives up when the server picks a mechanism that it did not offer."},
		Case{ID: "IMPI-2-AUTH-07", Level: Must, Needs: Client, Run: func(t *T) { wrongChoice(t, 9) }, Reference: refAuth,
			Expect: "A client gives up when the server picks a mechanism that does not exist."},
		Case{ID: "IMPI-2-AUTH-11", Level: Must, Needs: Server, Run: serverNone, Reference: refAuth,
			Expect: "A server with NONE answers AUTH with which 0 and a length, 8 bytes without a header."},
		Case{ID: "IMPI-2-AUTH-12", Level: Must, Needs: Server, Run: serverKey, Reference: refAuth,
			Expect: "A server with a key picks KEY, takes the key without an answer, and the job goes on."},
		Case{ID: "IMPI-2-AUTH-13", Level: Should, Needs: Server, Run: serverPrefersKey, Reference: refAuth,
			Expect: "A server and a client that have both mechanisms use KEY."},
		Case{ID: "IMPI-2-AUTH-14", Level: Must, Needs: Server, Run: serverFallsBack, Reference: refAuth,
			Expect: "A server that has both mechanisms picks NONE for a client that offers nothing else."},
		Case{ID: "IMPI-2-AUTH-15", Level: Must, Needs: Server, Run: nothingInCommon, Reference: refAuth,
			Expect: "A server closes the connection of a client that offers no mechanism of its own: none at all, or others."},
		Case{ID: "IMPI-2-AUTH-16", Level: Must, Needs: Server, Run: wrongKey, Reference: refAuth,
			Expect: "A server closes the connection of a client with a wrong key."},
		Case{ID: "IMPI-2-AUTH-17", Level: Should, Needs: Server, Run: unknownMechanisms, Reference: refAuth,
			Expect: "Bits of the mask that stand for no known mechanism do not matter."},
		Case{ID: "IMPI-2-AUTH-18", Level: Must, Needs: Server, Run: authFirst, Reference: refAuth,
			Expect: "A server closes a connection whose first command is not AUTH."},
	)
}

// aKey has different bytes, and is not negative where somebody takes it for signed.
const aKey = 0x0102030405060708

func authentication(t *T, a Auth, which uint32) {
	asked := func() *job {
		j := t.newJob(setup{iutAuth: a})
		j.launch()
		j.connected()
		equal(t, "the mask of AUTH", j.takeAuth(), a.mask())
		return j
	}
	const why = "the server has not answered AUTH yet"
	asked().unanswered(why)
	j := asked()
	j.conn.silent(why)
	j.choose(which)
	if which == authKey {
		equal(t, "the key", j.takeKey(), a.Key)
	}
	j.rank()
	j.conn.expect(cmdColl, -1)
}

func lengthInAnswer(t *T) {
	for _, which := range []uint32{authNone, authKey} {
		j := t.newJob(setup{iutAuth: Auth{None: true, Key: aKey}})
		j.launch()
		j.connected()
		j.takeAuth()
		j.conn.send("which len=8", u32(which, 8))
		if which == authKey {
			equal(t, "the key", j.takeKey(), uint64(aKey))
		}
		j.rank()
		j.run.kill()
	}
}

func wrongChoice(t *T, which uint32) {
	j := t.newJob(setup{iutAuth: Auth{None: true}})
	j.launch()
	j.connected()
	j.takeAuth()
	j.conn.send("a choice that was not offered", u32(which, 0))
	j.refuses("the server picked a mechanism that was not offered")
}

func serverNone(t *T) {
	s := t.serve(2, Auth{None: true})
	c := s.connect(0)
	c.record(record{cmdAuth, u32(1 << authNone)})
	equal(t, "the mechanism", uint32s(c.read(8, "the answer to AUTH"))[0], authNone)
	c.joins(0)
	c.silent("client 1 is missing")
	unanswered("client 1 is missing", c.conn)
}

func serverKey(t *T) {
	s := t.serve(2, Auth{Key: aKey})
	a, b := s.connect(0), s.connect(1)
	for i, c := range []*member{a, b} {
		equal(t, "the mechanism", c.auth(1<<authKey), authKey)
		c.send("key", u64(aKey))
		c.joins(i)
	}
	a.takesSize(2)
	b.takesSize(2)
}

func serverPrefersKey(t *T) {
	c := t.serve(1, Auth{None: true, Key: aKey}).connect(0)
	equal(t, "the mechanism", c.auth(1<<authKey|1<<authNone), authKey)
	c.send("key", u64(aKey))
	c.joins(0)
	c.takesSize(1)
}

func serverFallsBack(t *T) {
	c := t.serve(1, Auth{None: true, Key: aKey}).connect(0)
	equal(t, "the mechanism", c.auth(1<<authNone), authNone)
	c.joins(0)
	c.takesSize(1)
}

func nothingInCommon(t *T) {
	s := t.serve(2, Auth{Key: aKey})
	for _, mask := range []uint32{0, 1 << authNone, 1 << 7} {
		c := s.connect(0)
		c.record(record{cmdAuth, u32(mask)})
		c.closed("nothing that was offered fits")
	}
	s.run.alive("it is to wait for others")
}

func wrongKey(t *T) {
	s := t.serve(2, Auth{Key: aKey})
	c := s.connect(0)
	equal(t, "the mechanism", c.auth(1<<authKey), authKey)
	c.send("a wrong key", u64(aKey+1))
	_ = c.trySend("IMPI 0", record{cmdIMPI, u32(0)}.bytes()) // it may be closed by now
	c.closed("the key was wrong")
}

func unknownMechanisms(t *T) {
	c := t.serve(1, Auth{None: true}).connect(0)
	equal(t, "the mechanism", c.auth(0xfffffff1), authNone)
	c.joins(0)
	c.takesSize(1)
}

func authFirst(t *T) {
	s := t.serve(2, Auth{None: true})
	for _, r := range []record{{cmdIMPI, u32(0)}, coll(cNHosts, u32(1)), {cmd: cmdDone}, {cmd: cmdFini}} {
		c := s.connect(0)
		c.record(r)
		c.closed("AUTH should be the first command")
	}
	s.run.alive("it is to wait for others")
}
