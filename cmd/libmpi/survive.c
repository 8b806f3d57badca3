// The functions of mpi-ext.h, which are not in the tables that the others are generated from: they
// are not of MPI's ABI.

#include <mpi-ext.h>
#include "_cgo_export.h"

#define W(x) ((GoUintptr)(x))

int PMPIX_Comm_revoke(MPI_Comm comm) { return extCommRevoke(W(comm)); }
int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag) { return extCommIsRevoked(W(comm), W(flag)); }
int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm) { return extCommShrink(W(comm), W(newcomm)); }
int PMPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request) { return extCommIshrink(W(comm), W(newcomm), W(request)); }
int PMPIX_Comm_agree(MPI_Comm comm, int *flag) { return extCommAgree(W(comm), W(flag)); }
int PMPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request) { return extCommIagree(W(comm), W(flag), W(request)); }
int PMPIX_Comm_failure_ack(MPI_Comm comm) { return extCommFailureAck(W(comm)); }
int PMPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp) { return extCommFailureGetAcked(W(comm), W(failedgrp)); }
int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp) { return extCommGetFailed(W(comm), W(failedgrp)); }
int PMPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked) { return extCommAckFailed(W(comm), num_to_ack, W(num_acked)); }

#define TWIN(result, name, params) result name params __attribute__((weak, alias("P" #name)))

TWIN(int, MPIX_Comm_revoke, (MPI_Comm comm));
TWIN(int, MPIX_Comm_is_revoked, (MPI_Comm comm, int *flag));
TWIN(int, MPIX_Comm_shrink, (MPI_Comm comm, MPI_Comm *newcomm));
TWIN(int, MPIX_Comm_ishrink, (MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request));
TWIN(int, MPIX_Comm_agree, (MPI_Comm comm, int *flag));
TWIN(int, MPIX_Comm_iagree, (MPI_Comm comm, int *flag, MPI_Request *request));
TWIN(int, MPIX_Comm_failure_ack, (MPI_Comm comm));
TWIN(int, MPIX_Comm_failure_get_acked, (MPI_Comm comm, MPI_Group *failedgrp));
TWIN(int, MPIX_Comm_get_failed, (MPI_Comm comm, MPI_Group *failedgrp));
TWIN(int, MPIX_Comm_ack_failed, (MPI_Comm comm, int num_to_ack, int *num_acked));
