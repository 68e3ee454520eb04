/* os/threads.h: how this folder starts threads inside a host process. */
#ifndef OC_OS_THREADS_H
#define OC_OS_THREADS_H

#include <pthread.h>

/*
 * pthread_create with the host's signals blocked in the new thread, SIGPIPE included, so that its handlers run on its own
 * threads. Returns an errno value, 0 on success.
 */
int oc_thread_start(pthread_t *thread, void *(*fn)(void *), void *state);

#endif
