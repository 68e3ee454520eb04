/*
 * os/seccomp.h: a filter of system calls: the ways out of a process that Landlock does not know. It holds the calling thread and what
 * that starts later, for ever. Refused calls return an error (EPERM, EACCES for sockets, ENOSYS for io_uring): nothing is killed.
 *
 * Refused: sockets but for TCP, netlink's lists of interfaces and devices, and connected pairs; extended attributes, modes, owners, times
 * and flags of files; io_uring, which would pass by this filter; what outlives the process in the kernel (System V and POSIX message
 * queues, shared memory, keys); mounting, other namespaces, open_by_handle_at; memory and descriptors of other processes; calls of
 * another architecture's numbering. Not refused: memfd_create, anonymous shared memory, userfaultfd, ptrace (Landlock holds that).
 */
#ifndef OC_OS_SECCOMP_H
#define OC_OS_SECCOMP_H

#include "base/bytes.h"

/* Whether the kernel can filter here. */
bool oc_seccomp_available(void);

/*
 * `tcp`: TCP sockets may be made, because a Landlock domain of ABI 4 or newer keeps them from connecting. Listening and TCP Fast
 * Open, which that does not see, are refused all the same. ORTCRYPT_E_UNSUPPORTED where the kernel cannot; also sets PR_SET_NO_NEW_PRIVS.
 */
ortcrypt_status oc_seccomp_restrict(bool tcp, ortcrypt_error *err);

#endif
