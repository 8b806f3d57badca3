/* Functions beside those of MPI: User-Level Failure Mitigation, as the MPI Forum's proposal has it.
 * docs/survival.md says what they do. They are for jobs whose file has survive = true; in others
 * they give MPI_ERR_UNSUPPORTED_OPERATION, but for MPIX_Comm_is_revoked and
 * MPIX_Comm_get_failed. */

#ifndef IMPI_MPI_EXT_H
#define IMPI_MPI_EXT_H

#include <mpi.h>

#define IMPI_HAS_ULFM 1

/* Error classes, which are their own codes. */
#define MPIX_ERR_PROC_FAILED         101 /* process has failed */
#define MPIX_ERR_PROC_FAILED_PENDING 102 /* pending; a process that might match it has failed */
#define MPIX_ERR_REVOKED             103 /* communicator is revoked */

#if defined(__cplusplus)
extern "C" {
#endif

int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int MPIX_Comm_agree(MPI_Comm comm, int *flag);
int MPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int MPIX_Comm_failure_ack(MPI_Comm comm);
int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);

int PMPIX_Comm_revoke(MPI_Comm comm);
int PMPIX_Comm_is_revoked(MPI_Comm comm, int *flag);
int PMPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *newcomm);
int PMPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request);
int PMPIX_Comm_agree(MPI_Comm comm, int *flag);
int PMPIX_Comm_iagree(MPI_Comm comm, int *flag, MPI_Request *request);
int PMPIX_Comm_failure_ack(MPI_Comm comm);
int PMPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group *failedgrp);
int PMPIX_Comm_get_failed(MPI_Comm comm, MPI_Group *failedgrp);
int PMPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int *num_acked);

#if defined(__cplusplus)
}
#endif

#endif
