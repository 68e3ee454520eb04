/* os/attempt.h: trying what may crash or hang, in a child of this process. */
#ifndef OC_OS_ATTEMPT_H
#define OC_OS_ATTEMPT_H

/* What became of it; 0 to OC_ATTEMPT_MAX are the function's own results. */
enum { OC_ATTEMPT_MAX = 127, OC_ATTEMPT_CRASHED = 128, OC_ATTEMPT_HUNG = 129, OC_ATTEMPT_NO_CHILD = 130 };

/*
 * fn(state) in a forked child, which is killed after `limit_ms`. The child prints nothing and leaves no core file; fn must do
 * without other threads (the child has one), and what it changes is lost. The caller's SIGCHLD handler may see the child end.
 * fn returns 0 to OC_ATTEMPT_MAX.
 */
int oc_attempt(int (*fn)(void *state), void *state, int limit_ms);

#endif
