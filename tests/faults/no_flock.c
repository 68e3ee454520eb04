/* no_flock: preloaded, makes every file system one that cannot flock. NO_FLOCK is the errno (default EOPNOTSUPP). */
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>

int flock(int fd, int operation)
{
    const char *const cause = getenv("NO_FLOCK");
    (void)fd;
    (void)operation;
    errno = cause == NULL ? EOPNOTSUPP : atoi(cause);
    return -1;
}
