/* Stands between Python and the C library: counts the calls that touch files, and fails or kills at the one it is told.

   ralf_arm(n, what, m, then) starts counting at 1; at call n happens `what`, at call m `then`: an errno; KILL: SIGKILL
   before the call; SHORT: half of what was to be written. ralf_disarm() stops and returns how many calls there were.
   ralf_log() is what they were, one line each: the call, a tab, the file. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum { KILL = -9, SHORT = -2 };

static int armed, what, then;
static long calls, first, second;
static char log_text[1 << 20];
static size_t log_size;

void ralf_arm(long n, int what_, long m, int then_) {
    calls = 0, first = n, what = what_, second = m, then = then_;
    log_size = 0, log_text[0] = 0, armed = 1;
}

long ralf_disarm(void) {
    armed = 0;
    return calls;
}

const char *ralf_log(void) { return log_text; }

static void noted(const char *call, const char *path, int fd) {
    char link[64], found[4096];
    if (!path) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t size = syscall(SYS_readlink, link, found, sizeof found - 1);
        found[size > 0 ? size : 0] = 0;
        path = found;
    }
    size_t room = sizeof log_text - log_size;
    int size = snprintf(log_text + log_size, room, "%s\t%s\n", call, path);
    if (size > 0 && (size_t)size < room) log_size += size;
}

/* What is to happen at this call: 0 for nothing. */
static int fault(const char *call, const char *path, int fd) {
    if (!armed) return 0;
    calls++;
    if (!first && !second) noted(call, path, fd);
    int found = calls == first ? what : calls == second ? then : 0;
    if (found == KILL) syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    return found;
}

#define FAILS(found) \
    if ((found) > 0) { errno = (found); return -1; }

#define WRAP(type, name, path, fd, params, args) \
    type name params { \
        static type(*real) params; \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        FAILS(fault(#name, path, fd)) \
        return real args; \
    }

#define WRAP_WRITE(name, more_params, more_args) \
    ssize_t name(int fd, const void *data, size_t size more_params) { \
        static ssize_t (*real)(int, const void *, size_t more_params); \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        int found = fault(#name, NULL, fd); \
        FAILS(found) \
        return real(fd, data, found == SHORT ? size / 2 : size more_args); \
    }

#define COMMA ,

WRAP_WRITE(write, , )
WRAP_WRITE(pwrite64, COMMA off64_t at, COMMA at)
WRAP(ssize_t, read, NULL, fd, (int fd, void *data, size_t size), (fd, data, size))
WRAP(ssize_t, pread64, NULL, fd, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))
WRAP(off64_t, lseek64, NULL, fd, (int fd, off64_t at, int whence), (fd, at, whence))
WRAP(int, fsync, NULL, fd, (int fd), (fd))
WRAP(int, fdatasync, NULL, fd, (int fd), (fd))
WRAP(int, ftruncate64, NULL, fd, (int fd, off64_t size), (fd, size))
WRAP(int, flock, NULL, fd, (int fd, int how), (fd, how))
WRAP(int, rename, to, 0, (const char *from, const char *to), (from, to))
WRAP(int, renameat, to, 0, (int a, const char *from, int b, const char *to), (a, from, b, to))
WRAP(int, renameat2, to, 0, (int a, const char *from, int b, const char *to, unsigned how), (a, from, b, to, how))
WRAP(int, link, to, 0, (const char *from, const char *to), (from, to))
WRAP(int, unlink, path, 0, (const char *path), (path))
WRAP(int, unlinkat, path, 0, (int fd, const char *path, int how), (fd, path, how))
WRAP(int, rmdir, path, 0, (const char *path), (path))
WRAP(int, mkdir, path, 0, (const char *path, mode_t mode), (path, mode))
WRAP(int, chmod, path, 0, (const char *path, mode_t mode), (path, mode))
WRAP(int, fchmod, NULL, fd, (int fd, mode_t mode), (fd, mode))
WRAP(int, utimensat, path, fd, (int fd, const char *path, const struct timespec times[2], int how), (fd, path, times, how))
WRAP(int, stat64, path, 0, (const char *path, struct stat64 *into), (path, into))
WRAP(int, lstat64, path, 0, (const char *path, struct stat64 *into), (path, into))
WRAP(int, fstat64, NULL, fd, (int fd, struct stat64 *into), (fd, into))

int open64(const char *path, int flags, ...) {
    static int (*real)(const char *, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "open64");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    FAILS(fault(flags & O_CREAT ? "create" : flags & (O_WRONLY | O_RDWR) ? "open for writing" : "open", path, 0))
    return real(path, flags, mode);
}

int fcntl64(int fd, int how, ...) {
    static int (*real)(int, int, ...);
    if (!real) real = dlsym(RTLD_NEXT, "fcntl64");
    va_list rest;
    va_start(rest, how);
    void *value = va_arg(rest, void *);
    va_end(rest);
    FAILS(fault("fcntl", NULL, fd))
    return real(fd, how, value);
}

DIR *opendir(const char *path) {
    static DIR *(*real)(const char *);
    if (!real) real = dlsym(RTLD_NEXT, "opendir");
    int found = fault("opendir", path, 0);
    if (found > 0) {
        errno = found;
        return NULL;
    }
    return real(path);
}

int close(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "close");
    int found = fault("close", NULL, fd);
    int closed = real(fd); /* it is closed whatever it says */
    FAILS(found)
    return closed;
}
