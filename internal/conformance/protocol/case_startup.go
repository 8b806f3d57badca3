package protocol

func init() {
	register("startup",
		Case{ID: "IMPI-2-JOB-01", Level: Must, Needs: Program, Run: wholeJob,
			Expect:    "the client takes part in a whole job: AUTH, IMPI, the labels, DONE, the dance, a program, MPI_Finalize, FINI",
			Reference: "IMPI ch.2"},
	)
}

func wholeJob(t *T) {
	j := t.join(setup{})
	j.do(j.iut(0), "info").is("size", 3)
	j.quiet("nobody sends")
	j.finish()
}
