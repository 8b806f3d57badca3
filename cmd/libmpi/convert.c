// Handles as ints. Those of the ABI are their values; the lower half of others tells
// apart those of a kind that exist at a time.

#include <mpi.h>
#include "_cgo_export.h"

#define WEAK(name) __attribute__((weak, alias(#name)))

static int toint(const void *handle) { return (int)(unsigned)(GoUintptr)handle; }

// fromint gives the handle of a constant, or of the object of a kind that has the
// number now.
static void *fromint(int kind, int n)
{
	if (n >= 0 && n < 4096)
		return (void *)(GoUintptr)n;
	return (void *)handleFromInt(kind, n);
}

int PMPI_Comm_toint(MPI_Comm comm) { return toint(comm); }
int MPI_Comm_toint(MPI_Comm comm) WEAK(PMPI_Comm_toint);
MPI_Comm PMPI_Comm_fromint(int comm) { return fromint(1, comm); }
MPI_Comm MPI_Comm_fromint(int comm) WEAK(PMPI_Comm_fromint);

int PMPI_Group_toint(MPI_Group group) { return toint(group); }
int MPI_Group_toint(MPI_Group group) WEAK(PMPI_Group_toint);
MPI_Group PMPI_Group_fromint(int group) { return fromint(2, group); }
MPI_Group MPI_Group_fromint(int group) WEAK(PMPI_Group_fromint);

int PMPI_Type_toint(MPI_Datatype datatype) { return toint(datatype); }
int MPI_Type_toint(MPI_Datatype datatype) WEAK(PMPI_Type_toint);
MPI_Datatype PMPI_Type_fromint(int datatype) { return fromint(3, datatype); }
MPI_Datatype MPI_Type_fromint(int datatype) WEAK(PMPI_Type_fromint);

int PMPI_Op_toint(MPI_Op op) { return toint(op); }
int MPI_Op_toint(MPI_Op op) WEAK(PMPI_Op_toint);
MPI_Op PMPI_Op_fromint(int op) { return fromint(4, op); }
MPI_Op MPI_Op_fromint(int op) WEAK(PMPI_Op_fromint);

int PMPI_Request_toint(MPI_Request request) { return toint(request); }
int MPI_Request_toint(MPI_Request request) WEAK(PMPI_Request_toint);
MPI_Request PMPI_Request_fromint(int request) { return fromint(5, request); }
MPI_Request MPI_Request_fromint(int request) WEAK(PMPI_Request_fromint);

int PMPI_Info_toint(MPI_Info info) { return toint(info); }
int MPI_Info_toint(MPI_Info info) WEAK(PMPI_Info_toint);
MPI_Info PMPI_Info_fromint(int info) { return fromint(6, info); }
MPI_Info MPI_Info_fromint(int info) WEAK(PMPI_Info_fromint);

int PMPI_Errhandler_toint(MPI_Errhandler errhandler) { return toint(errhandler); }
int MPI_Errhandler_toint(MPI_Errhandler errhandler) WEAK(PMPI_Errhandler_toint);
MPI_Errhandler PMPI_Errhandler_fromint(int errhandler) { return fromint(7, errhandler); }
MPI_Errhandler MPI_Errhandler_fromint(int errhandler) WEAK(PMPI_Errhandler_fromint);

int PMPI_Win_toint(MPI_Win win) { return toint(win); }
int MPI_Win_toint(MPI_Win win) WEAK(PMPI_Win_toint);
MPI_Win PMPI_Win_fromint(int win) { return fromint(8, win); }
MPI_Win MPI_Win_fromint(int win) WEAK(PMPI_Win_fromint);

int PMPI_File_toint(MPI_File file) { return toint(file); }
int MPI_File_toint(MPI_File file) WEAK(PMPI_File_toint);
MPI_File PMPI_File_fromint(int file) { return fromint(9, file); }
MPI_File MPI_File_fromint(int file) WEAK(PMPI_File_fromint);

int PMPI_Session_toint(MPI_Session session) { return toint(session); }
int MPI_Session_toint(MPI_Session session) WEAK(PMPI_Session_toint);
MPI_Session PMPI_Session_fromint(int session) { return fromint(10, session); }
MPI_Session MPI_Session_fromint(int session) WEAK(PMPI_Session_fromint);

int PMPI_Message_toint(MPI_Message message) { return toint(message); }
int MPI_Message_toint(MPI_Message message) WEAK(PMPI_Message_toint);
MPI_Message PMPI_Message_fromint(int message) { return fromint(11, message); }
MPI_Message MPI_Message_fromint(int message) WEAK(PMPI_Message_fromint);
