/* What a service does to a library in a long life: many cycles of create, run and destroy, at once in several threads,
 * without a leak; a fork; and weights that are gone. The argument is the number of cycles. */
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stencil.h"

enum { kThreads = 8 };

static void *in, *want; /* an input, and its output */
static size_t bytes, out_bytes;
static int failures;

static void fail(const char* what, const stencil_ctx* ctx, int status) {
  printf("%s: status %d, %s\n", what, status, stencil_last_error(ctx));
  __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

static void cycle(void* out) {
  stencil_ctx* ctx = NULL;
  int status = stencil_create(NULL, &ctx);
  if (status != stencil_OK) {
    fail("create", NULL, status);
    return;
  }
  memset(out, 0, out_bytes);
  status = stencil_run(ctx, (const void* const*)&in, &out, stencil_HOST);
  if (status != stencil_OK) fail("run", ctx, status);
  if (memcmp(out, want, out_bytes) != 0) fail("other bits", ctx, 0);
  stencil_destroy(ctx);
}

static void* cycles(void* n) {
  void* out = malloc(out_bytes);
  for (int i = 0; i < *(int*)n; ++i) cycle(out);
  free(out);
  return NULL;
}

static void at_once(int n) {
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, cycles, &n);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

static long resident_kb(void) {
  long pages = 0, ignored = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &ignored, &pages) != 2) pages = 0;
  if (f) fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What malloc has given out and not got back. */
static long held_kb(void) {
  const struct mallinfo2 m = mallinfo2();
  return (long)((m.uordblks + m.hblkhd) / 1024);
}

static int open_files(void) {
  DIR* d = opendir("/proc/self/fd");
  int n = 0;
  while (d && readdir(d)) ++n;
  if (d) closedir(d);
  return n;
}

/* A child of fork can neither use nor harm its parent's context. */
static void forked(void* out) {
  stencil_ctx* ctx = NULL;
  int status = stencil_create(NULL, &ctx), child = 0;
  if (status != stencil_OK) {
    fail("create before fork", NULL, status);
    return;
  }
  const pid_t pid = fork();
  if (pid == 0) {
    status = stencil_run(ctx, (const void* const*)&in, &out, stencil_HOST);
    const int right = status == stencil_BAD_ARGUMENT && strstr(stencil_last_error(ctx), "before fork");
    stencil_destroy(ctx);
    _exit(right ? 0 : 1);
  }
  waitpid(pid, &child, 0);
  if (!WIFEXITED(child) || WEXITSTATUS(child) != 0) fail("a child's run", ctx, child);
  memset(out, 0, out_bytes);
  status = stencil_run(ctx, (const void* const*)&in, &out, stencil_HOST);
  if (status != stencil_OK || memcmp(out, want, out_bytes) != 0) fail("the parent's run", ctx, status);
  stencil_destroy(ctx);
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 100;
  bytes = stencil_io_info()->inputs[0].bytes;
  in = malloc(bytes);
  out_bytes = stencil_io_info()->outputs[0].bytes;
  want = malloc(out_bytes);
  void* out = malloc(out_bytes);
  for (size_t i = 0; i < bytes / sizeof(float); ++i) ((float*)in)[i] = (float)(i % 17) - 8;
  stencil_ctx* ctx = NULL;
  int status = stencil_create(NULL, &ctx);
  if (status != stencil_OK) {
    printf("status %d: %s\n", status, stencil_last_error(NULL));
    return 2;
  }
  status = stencil_run(ctx, (const void* const*)&in, &want, stencil_HOST);
  if (status != stencil_OK) fail("the first run", ctx, status);
  stencil_destroy(ctx);
  forked(out);
  /* Allocators keep what they had at most, so the first part of the cycles says nothing. */
  n = n / kThreads + 1;
  at_once(n / 5 + 1);
  const long before = resident_kb(), held = held_kb();
  const int files = open_files();
  at_once(n);
  /* The C library counts what ended threads had in reserve as held, about a hundred KB. */
  long leaked = held_kb() - held;
  /* On a busy machine a thread may still be on its way out. What leaks stays, however long one waits. */
  for (int i = 0; i < 50 && leaked > 512; ++i) {
    usleep(100000);
    leaked = held_kb() - held;
  }
  const long grown = resident_kb() - before;
  if (leaked > 512) printf("%ld KB leaked in %d cycles\n", leaked, n * kThreads), ++failures;
  /* Allocators of threads keep what is free, in pieces; a context alone would be more than that. */
  if (grown > 65536) printf("memory grew by %ld KB in %d cycles\n", grown, n * kThreads), ++failures;
  if (open_files() > files) printf("%d files are open, there were %d\n", open_files(), files), ++failures;
  fprintf(stderr, "%d cycles: %ld KB more are held, %ld KB more resident, %d files\n", n * kThreads, leaked, grown,
          open_files());
  printf("%d failures\n", failures);
  return 0;
}
