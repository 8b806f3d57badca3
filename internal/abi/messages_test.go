package abi

import (
	"strings"
	"testing"
)

func TestMessages(t *testing.T) {
	fns, err := ParseHeader(`
int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int MPI_Send_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int MPI_Bsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int MPI_Bsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int MPI_Irsend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Irsend_c(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Recv_init(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Recv_init_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Isendrecv_replace(void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Request *request);
int MPI_Isendrecv_replace_c(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm, MPI_Request *request);
int MPI_Raccumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request);
int MPI_Raccumulate_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request *request);
int MPI_Get_address(const void *location, MPI_Aint *address);
int MPI_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request);
int MPI_Irecv_c(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request);
`)
	if err != nil {
		t.Fatal(err)
	}
	text := Messages(fns)
	for _, want := range []string{
		"//export abiBsend\nfunc abiBsend(buf uintptr, count int64, datatype uintptr, dest int32, tag int32, comm uintptr, which int32) int32 {\n" +
			"\treturn send(\"Bsend\", which, buf, count, datatype, dest, tag, comm, (*commObject).Bsend)\n}\n",
		"\treturn beginSend(\"Irsend\", which, buf, count, datatype, dest, tag, comm, request, (*commObject).Irsend)\n",
		"\treturn beginRecv(\"Recv_init\", which, buf, count, datatype, source, tag, comm, request, (*commObject).RecvInit)\n",
		"\treturn beginReplace(\"Isendrecv_replace\", which, buf, count, datatype, dest, sendtag, source, recvtag, comm, request, (*commObject).IsendrecvReplace)\n",
		"\treturn rcombineAt(\"Raccumulate\", which, origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win, request, (*winObject).Raccumulate)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks\n%s\nIt is:\n%s", want, text)
		}
	}
	if strings.Count(text, "//export") != 5 { // not those that C's fast path learns from
		t.Errorf("%s", text)
	}
}
