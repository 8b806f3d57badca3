// Messages of several packets by a provider of libfabric alone: one process sends, the other looks at
// each byte. It ends with status 1 when a byte is wrong, and 2 when nothing has come for 30 s.
//
//	cc -O2 -o packets packets.c -lfabric && ./packets 'udp;ofi_rxd' 16000 100000
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { window = 16, most = 1 << 20 };

static struct fid_ep *ep;
static struct fid_cq *cq;
static struct fid_av *av;

static void must(int ret, const char *what)
{
	if (ret) {
		fprintf(stderr, "%s: %s\n", what, fi_strerror(-ret));
		exit(3);
	}
}

static void open_endpoint(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_NONE, .size = 1024};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fid_fabric *fabric;
	struct fid_domain *domain;

	hints->caps = FI_MSG;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->fabric_attr->prov_name = strdup(provider);
	must(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
}

static unsigned char byte_of(unsigned message, unsigned at) { return message * 31 + at * 7 + at / 251; }

static unsigned char memory[window][most];
static struct fi_context2 contexts[window];

// next waits for a completion, and returns its place.
static int next(size_t *len)
{
	time_t begun = time(NULL);
	struct fi_cq_msg_entry e;
	ssize_t n;

	while ((n = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN)
		if (time(NULL) - begun > 30) {
			printf("nothing has come for 30 s\n");
			exit(2);
		}
	must(n < 0 ? n : 0, "fi_cq_read");
	*len = e.len;
	return (struct fi_context2 *)e.op_context - contexts;
}

static void post_receive(int i, size_t size)
{
	ssize_t ret;
	while ((ret = fi_recv(ep, memory[i], size, NULL, FI_ADDR_UNSPEC, &contexts[i])) == -FI_EAGAIN)
		fi_cq_read(cq, NULL, 0);
	must(ret, "fi_recv");
}

static int receive(unsigned size, unsigned count)
{
	char seen[1 << 16] = {0};
	size_t len;

	for (unsigned k = 0; k < count; k++) {
		int i = next(&len);
		unsigned message;
		if (len != size) {
			printf("message %u has %zu bytes and not %u\n", k, len, size);
			return 1;
		}
		memcpy(&message, memory[i], sizeof message);
		if (message >= count || message + 4096 < k || message > k + 4096 || seen[message % sizeof seen] == 1 + (message / sizeof seen) % 100) {
			printf("the message after %u others says that it is %u\n", k, message);
			return 1;
		}
		seen[message % sizeof seen] = 1 + (message / sizeof seen) % 100;
		for (unsigned at = sizeof message; at < size; at++)
			if (memory[i][at] != byte_of(message, at)) {
				printf("byte %u of message %u is %u and not %u\n", at, message, memory[i][at], byte_of(message, at));
				return 1;
			}
		post_receive(i, size);
	}
	for (time_t end = time(NULL) + 2; time(NULL) < end;)
		fi_cq_read(cq, NULL, 0); // so that what it has received is acknowledged
	return 0;
}

static int send_all(fi_addr_t to, unsigned size, unsigned count)
{
	size_t len;
	int idle = window;

	for (unsigned k = 0; k < count; k++) {
		int i = idle ? window - idle-- : next(&len);
		ssize_t ret;
		memcpy(memory[i], &k, sizeof k);
		for (unsigned at = sizeof k; at < size; at++)
			memory[i][at] = byte_of(k, at);
		while ((ret = fi_send(ep, memory[i], size, NULL, to, &contexts[i])) == -FI_EAGAIN)
			fi_cq_read(cq, NULL, 0);
		must(ret, "fi_send");
	}
	for (int left = window - idle; left > 0; left--)
		next(&len);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned size = argc > 2 ? atoi(argv[2]) : 16000, count = argc > 3 ? atoi(argv[3]) : 100000;
	unsigned char name[256] = {0};
	size_t n = sizeof name;
	int ends[2], status;
	fi_addr_t to;

	if (argc < 2 || size < 8 || size > most || pipe(ends))
		return 3;
	pid_t child = fork();
	if (child == 0) { // the sender, which has libfabric for itself
		if (read(ends[0], name, sizeof name) != sizeof name)
			return 3;
		open_endpoint(argv[1]);
		if (fi_av_insert(av, name, 1, &to, 0, NULL) != 1)
			return 3;
		return send_all(to, size, count);
	}
	open_endpoint(argv[1]);
	must(fi_getname(&ep->fid, name, &n), "fi_getname");
	for (int i = 0; i < window; i++)
		post_receive(i, size);
	if (write(ends[1], name, sizeof name) != sizeof name)
		return 3;
	int ret = receive(size, count);
	waitpid(child, &status, WNOHANG);
	if (ret == 0)
		printf("%u messages of %u bytes are as they were sent\n", count, size);
	return ret;
}
