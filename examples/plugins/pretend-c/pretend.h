/* What the files of impi-transport-pretend-c share. */
#ifndef PRETEND_H
#define PRETEND_H

#include <impi_plugin.h>

enum {
	PLACES = 1024,                /* registrations at a time */
	KEY = 12,                     /* bytes: a place, and the generation of what is there */
	MOST_MESSAGE = (64 << 10) + 256,
};
#define TABLE_BYTES ((size_t)PLACES * 8)

/* domain.c: the memory of procs that can be read, and a table of it that peers see, as hardware
 * would. */
int domain_open(void);            /* 0, or -1 by errno */
int domain_table(void);           /* the table's descriptor */
void domain_limit(uint64_t bytes); /* that can be registered at a time; 0: any number */
int register_memory(const struct impi_memory *m, void **registration, void *key, size_t *key_size);
void unregister_memory(void *registration);
/* A copy of the descriptor of the memory of a key; -1: it is of no registration. */
int domain_file(const uint8_t key[KEY]);
/* 0: it can be no key. */
int parse_key(const uint8_t key[KEY], uint32_t *place, uint64_t *generation);
/* Maps a file in memory of a peer, or gives NULL: it has to be sealed against shrinking. */
void *map_file(int fd, size_t *size);

/* conn.c: makes a connection of a connected socket of kind SOCK_SEQPACKET. */
void conn_make(struct impi_conn *c, int fd, int rails);

#endif
