/* A user's program in C: two libraries linked into it, two contexts of each in threads of their own. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "first.h"
#include "second.h"

enum { RUNS = 5 };

typedef struct job {
  const float *want_first, *want_second;
  const float *x;
  int failures;
} job;

static int differs(const float *got, const float *want, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (!(fabsf(got[i] - want[i]) < 1e-5f)) return 1;
  }
  return 0;
}

#define RUN_MODEL(NAME, WANT)                                                     \
  do {                                                                            \
    NAME##_options options = {0};                                                 \
    options.size = sizeof options;                                                \
    options.weights_path = #NAME "/" #NAME ".weights";                            \
    NAME##_ctx *ctx = NULL;                                                       \
    if (NAME##_create(&options, &ctx) != NAME##_OK) {                             \
      fprintf(stderr, "%s: %s\n", #NAME, NAME##_last_error(NULL));                \
      ++j->failures;                                                              \
      break;                                                                      \
    }                                                                             \
    const size_t bytes = NAME##_io_info()->outputs[0].bytes;                      \
    float *y = malloc(bytes);                                                     \
    const void *in[] = {j->x};                                                    \
    void *out[] = {y};                                                            \
    for (int i = 0; i < RUNS; ++i) {                                              \
      if (NAME##_run(ctx, in, out, NAME##_HOST) != NAME##_OK) {                   \
        fprintf(stderr, "%s: %s\n", #NAME, NAME##_last_error(ctx));               \
        ++j->failures;                                                            \
      } else {                                                                    \
        j->failures += differs(y, WANT, bytes / sizeof(float));                   \
      }                                                                           \
    }                                                                             \
    free(y);                                                                      \
    NAME##_destroy(ctx);                                                          \
  } while (0)

static void *work(void *p) {
  job *j = p;
  RUN_MODEL(first, j->want_first);
  RUN_MODEL(second, j->want_second);
  return NULL;
}

static float *load(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) exit(2);
  fseek(f, 0, SEEK_END);
  const long n = ftell(f);
  rewind(f);
  float *p = malloc((size_t)n);
  if (fread(p, 1, (size_t)n, f) != (size_t)n) exit(2);
  fclose(f);
  return p;
}

int main(void) {
  job jobs[2];
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    jobs[i] = (job){load("want_first"), load("want_second"), load("x"), 0};
    pthread_create(&threads[i], NULL, work, &jobs[i]);
  }
  int failures = 0;
  for (int i = 0; i < 2; ++i) {
    pthread_join(threads[i], NULL);
    failures += jobs[i].failures;
  }
  /* What must be refused. */
  first_ctx *ctx = NULL;
  first_options bad = {0};
  failures += first_create(&bad, &ctx) != first_BAD_ARGUMENT || ctx != NULL;
  bad.size = sizeof bad;
  bad.weights_path = "none";
  failures += first_create(&bad, &ctx) != first_WEIGHTS_MISSING || first_last_error(NULL)[0] == 0;
  bad.weights_path = "second/second.weights";
  failures += first_create(&bad, &ctx) != first_WEIGHTS_MISMATCH;
  failures += first_run(NULL, NULL, NULL, first_HOST) != first_BAD_ARGUMENT;
  printf("%d failures\n", failures);
  return failures != 0;
}
