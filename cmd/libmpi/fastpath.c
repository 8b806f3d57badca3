// Short messages between procs of one host without entering Go: fast-box messages, written and read
// in memory that both procs have mapped. Each function does a call completely, or changes nothing
// and lets Go do it. Go reports all errors. Sends are in fastsend.h, receives in fastrecv.h,
// requests in fastrequest.h.

#include "fastboard.h"
#include "fastrequest.h"
#include "faststart.h"
#include "fastwindow.h"

#define WEAK(name) __attribute__((weak, alias(#name)))

struct fastpath impi_fast_path = { .gate = CLOSED };
uint8_t impi_width[TYPES], impi_kind[TYPES], impi_number[TYPES], impi_op[OP_HANDLES];
_Atomic uintptr_t impi_readable[PAGES], impi_writable[PAGES];

#include "fastpath_calls.h"

// If the send has left but the receive has to be done by Go, the call goes on with MPI_PROC_NULL as
// the destination. which is 1 for MPI_Sendrecv_c.
static inline int exchange(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status, int which)
{
	int any = source >= 0 || source == MPI_ANY_SOURCE;
	if (any && x->carriers.lend != NULL && bytes(sendcount, sendtype) > CARRIED_MOST) {
		MPI_Request sends; // as a send that waits for its receiver would keep this proc from receiving
		if (start_send(sendbuf, sendcount, sendtype, dest, sendtag, comm, &sends)) {
			int error = MPI_SUCCESS, late = MPI_SUCCESS;
			if (!recv_fastbox(recvbuf, recvcount, recvtype, source, recvtag, comm, status))
				error = abiSendrecv(W(sendbuf), 0, W(sendtype), MPI_PROC_NULL, sendtag, W(recvbuf), recvcount, W(recvtype), source, recvtag, W(comm), W(status), which);
			if (!finish_wait(&sends, MPI_STATUS_IGNORE))
				late = abiWait(W(&sends), W(MPI_STATUS_IGNORE));
			return error ? error : late;
		}
	} else if (any && send_fastbox(sendbuf, sendcount, sendtype, dest, sendtag, comm)) {
		if (recv_fastbox(recvbuf, recvcount, recvtype, source, recvtag, comm, status))
			return MPI_SUCCESS;
		dest = MPI_PROC_NULL;
	}
	return abiSendrecv(W(sendbuf), sendcount, W(sendtype), dest, sendtag, W(recvbuf), recvcount, W(recvtype), source, recvtag, W(comm), W(status), which);
}

TIMED static int timed_exchange(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status, int which)
{
	uint64_t begun = impi_clock();
	int error = exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, which);
	impi_exchanged(SENDRECV, begun, dest, sendtag, source, impi_size(sendcount, sendtype), W(comm));
	return error;
}

int PMPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
	return MEASURED ? timed_exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, 0) : exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, 0);
}
int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status) WEAK(PMPI_Sendrecv);

int PMPI_Sendrecv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
	return MEASURED ? timed_exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, 1) : exchange(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status, 1);
}
int MPI_Sendrecv_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status) WEAK(PMPI_Sendrecv_c);
