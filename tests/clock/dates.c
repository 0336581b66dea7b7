/* Shifts the dates that a program sees by CLOCK_SHIFT seconds, and no wait: `python -m tests.clock` preloads it.

   What reads the time of day gets it shifted: clock_gettime, gettimeofday, time. Times of files are shifted
   alike, so that a file that was just written is as old as it is. Clocks that only count up are left alone,
   so that sleeps and deadlines take as long as ever. (libfaketime 0.9.10 moves both or breaks sleeps.) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#define REAL(name) ((__typeof__(&name)) (uintptr_t) real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static time_t shift(void)
{
    static time_t seconds;
    static int known;
    if (!known) {
        const char *set = getenv("CLOCK_SHIFT");
        seconds = set ? atol(set) : 0;
        known = 1;
    }
    return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static __typeof__(&clock_gettime) get;
    if (!get)
        get = REAL(clock_gettime);
    int failed = get(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        now->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *now, void *zone)
{
    struct timespec precise;
    (void) zone;
    int failed = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *now)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}

/* A deadline of the time of day, as the program computed it from the shifted clock. */
int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
    struct timespec unshifted = *until;
    unshifted.tv_sec -= shift();
    return REAL(sem_timedwait)(semaphore, &unshifted);
}

#define SHIFTED(file) \
    (file->st_atim.tv_sec += shift(), file->st_mtim.tv_sec += shift(), file->st_ctim.tv_sec += shift())

#define STAT(name, parameters, ...) \
    int name parameters \
    { \
        int failed = REAL(name)(__VA_ARGS__); \
        if (!failed) \
            SHIFTED(file); \
        return failed; \
    }

STAT(stat, (const char *path, struct stat *file), path, file)
STAT(lstat, (const char *path, struct stat *file), path, file)
STAT(fstat, (int fd, struct stat *file), fd, file)
STAT(fstatat, (int at, const char *path, struct stat *file, int flags), at, path, file, flags)
STAT(stat64, (const char *path, struct stat64 *file), path, file)
STAT(lstat64, (const char *path, struct stat64 *file), path, file)
STAT(fstat64, (int fd, struct stat64 *file), fd, file)
STAT(fstatat64, (int at, const char *path, struct stat64 *file, int flags), at, path, file, flags)

int statx(int at, const char *path, int flags, unsigned int mask, struct statx *file)
{
    int failed = REAL(statx)(at, path, flags, mask, file);
    if (!failed) {
        file->stx_atime.tv_sec += shift();
        file->stx_btime.tv_sec += shift();
        file->stx_ctime.tv_sec += shift();
        file->stx_mtime.tv_sec += shift();
    }
    return failed;
}

static const struct timespec *unshifted(const struct timespec *times, struct timespec *place)
{
    if (!times)
        return NULL;
    for (int i = 0; i < 2; i++) {
        place[i] = times[i];
        if (times[i].tv_nsec != UTIME_NOW && times[i].tv_nsec != UTIME_OMIT)
            place[i].tv_sec -= shift();
    }
    return place;
}

int utimensat(int at, const char *path, const struct timespec times[2], int flags)
{
    struct timespec place[2];
    return REAL(utimensat)(at, path, unshifted(times, place), flags);
}

int futimens(int fd, const struct timespec times[2])
{
    struct timespec place[2];
    return REAL(futimens)(fd, unshifted(times, place));
}
