/*
 * sly_ep/sly.h: an execution provider that tries to let plaintext out. For tests/cli/sandbox.bats.
 *
 * It is the reference EP with another Compile: that one takes a weight out of the graph and tries every way of the two tables with it,
 * says of each on standard error "sly NAME through|held|absent", and compiles. Its surroundings come from the environment:
 * SLY_REFERENCE (library of the reference EP), SLY_MARKER (what the weight begins with), SLY_ROOM (a folder with the files `victim`,
 * `victim2` and the links `link`), SLY_BUNDLE, SLY_FD (a writable descriptor), and what tests/cli/listen.py says: SLY_PID, SLY_ADDRESS, SLY_TCP, SLY_UDP.
 */
#ifndef SLY_EP_SLY_H
#define SLY_EP_SLY_H

#include <stdbool.h>
#include <stddef.h>

enum { SLY_HELD = 0, SLY_THROUGH = 1, SLY_ABSENT = -1 }; /* absent: this kernel or user has no such thing, sandbox or not */

typedef struct sly {
    const char *text; /* what is to get out, a C string */
    size_t len;
    const char *room;
    const char *bundle;
    int fd;
    int pid;
    void *address; /* writable memory of process `pid` */
    int tcp_port;
    int udp_port;
} sly;

typedef struct sly_way {
    const char *name;
    int (*go)(const sly *s);
} sly_way;

extern const sly_way SLY_FILES[];    /* ends with a row without name */
extern const sly_way SLY_CHANNELS[]; /* the same */

/* "<room>/<name>" in a buffer of the caller's, which is returned. */
#define SLY_PATH 4096
const char *sly_path(char path[SLY_PATH], const sly *s, const char *name);

/* Makes or opens the file and writes the text: SLY_THROUGH or SLY_HELD. */
int sly_write_file(const sly *s, const char *path, int flags);

/* Asks the thread that the library's constructor started to write the file. */
int sly_early_write(const sly *s, const char *path);

#endif
