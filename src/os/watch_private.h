/* os/watch_private.h: what the files of the watch share. */
#ifndef OC_OS_WATCH_PRIVATE_H
#define OC_OS_WATCH_PRIVATE_H

#include "os/watch.h"

/* Answers the next notification of a listener, and adds a try to the result where it was one. */
void oc_watch_answer(int listener, oc_watch_result *result);

/* The filter for this machine's system calls, as a listener. -1 with errno when the kernel has none. */
int oc_watch_filter(void);

#endif
