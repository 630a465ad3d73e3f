/* A program as a user of a compiled library would write it: two contexts in two threads classify the
   same images of digits, and what they say is compared.

   usage: main [-s SECONDS] [-d DEVICES] [IMAGES LOGITS]
   IMAGES has float32 images of 64 pixels each; the logits, 10 an image, are written to LOGITS. Without
   them the images are noise. With -s both contexts go on for so long, and every round must give the bits
   of the first. With -d 2 the second context is on device 1, with -d 1 both are on device 0; without it they
   are on the current one. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "digits_branchy.h"

enum { PIXELS = 64, CLASSES = 10 };

struct worker {
  const float *images;
  size_t count;
  float *logits;
  double seconds; /* to go on for after the first round */
  int device;     /* as in the options */
  size_t rounds, different; /* classified images whose logits were not those of the first round */
  int status;
  char message[256];
};

/* run classifies image i. */
static void run(struct worker *w, digits_branchy_ctx *ctx, size_t i, float *logits) {
  const void *in[1] = {w->images + i * PIXELS};
  void *out[1] = {logits};
  w->status = digits_branchy_run(ctx, in, out, digits_branchy_HOST);
  if (w->status != digits_branchy_OK)
    snprintf(w->message, sizeof w->message, "image %zu: %s", i, digits_branchy_last_error(ctx));
}

/* now is a time in seconds. */
static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* again compares more rounds with the first. */
static void again(struct worker *w, digits_branchy_ctx *ctx) {
  float logits[CLASSES] = {0};
  for (double end = now() + w->seconds; w->status == digits_branchy_OK && now() < end; w->rounds++) {
    for (size_t i = 0; i < w->count && w->status == digits_branchy_OK; i++) {
      run(w, ctx, i, logits);
      w->different += memcmp(logits, w->logits + i * CLASSES, sizeof logits) != 0;
    }
  }
}

/* classify runs every image in a context of its own. */
static void *classify(void *argument) {
  struct worker *w = argument;
  digits_branchy_ctx *ctx = NULL;
  digits_branchy_options options = {0};
  options.size = sizeof options;
  options.device = w->device;
  w->status = digits_branchy_create(&options, &ctx);
  if (w->status != digits_branchy_OK) {
    snprintf(w->message, sizeof w->message, "create: %s", digits_branchy_last_error(NULL));
    return NULL;
  }
  for (size_t i = 0; i < w->count && w->status == digits_branchy_OK; i++) run(w, ctx, i, w->logits + i * CLASSES);
  w->rounds = 1;
  if (w->seconds > 0) again(w, ctx);
  digits_branchy_destroy(ctx);
  return NULL;
}

/* read_images reads a whole file; NULL when that fails. */
static float *read_images(const char *path, size_t *count) {
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  float *data = NULL;
  size_t used = 0, room = 0, n;
  do {
    if (used == room) {
      room = room ? 2 * room : 1024 * PIXELS;
      float *more = realloc(data, room * sizeof *data);
      if (!more) {
        free(data);
        fclose(f);
        return NULL;
      }
      data = more;
    }
    n = fread(data + used, sizeof *data, room - used, f);
    used += n;
  } while (n > 0);
  fclose(f);
  *count = used / PIXELS;
  return data;
}

/* noise makes images of numbers in [0, 1). */
static float *noise(size_t count) {
  float *data = malloc(count * PIXELS * sizeof *data);
  unsigned x = 1;
  for (size_t i = 0; data && i < count * PIXELS; i++) {
    x = x * 1664525u + 1013904223u;
    data[i] = (float)(x >> 8) / (1 << 24);
  }
  return data;
}

/* save writes the logits; without a path there is nothing to do. */
static int save(const char *path, const float *logits, size_t count) {
  if (!path) return 1;
  FILE *f = fopen(path, "wb");
  if (!f) return 0;
  size_t written = fwrite(logits, CLASSES * sizeof(float), count, f);
  return fclose(f) == 0 && written == count;
}

/* io_as_expected checks that the library is of the model this program was written for. */
static int io_as_expected(void) {
  const digits_branchy_io *io = digits_branchy_io_info();
  return io->input_count == 1 && io->output_count == 1 && strcmp(io->inputs[0].name, "image") == 0 &&
         io->inputs[0].bytes == PIXELS * sizeof(float) && io->outputs[0].bytes == CLASSES * sizeof(float);
}

int main(int argc, char **argv) {
  size_t count = 16;
  double seconds = 0, devices = 0;
  const char *program = argv[0];
  while (argc > 2 && (strcmp(argv[1], "-s") == 0 || strcmp(argv[1], "-d") == 0)) {
    char *end;
    double *value = argv[1][1] == 's' ? &seconds : &devices;
    *value = strtod(argv[2], &end);
    if (*end || !(*value > 0)) argc = 0;
    argc -= 2;
    argv += 2;
  }
  if ((argc != 1 && argc != 3) || (devices != 0 && devices != 1 && devices != 2)) {
    fprintf(stderr, "usage: %s [-s SECONDS] [-d DEVICES] [IMAGES LOGITS]\n", program);
    return 2;
  }
  if (!io_as_expected()) {
    fprintf(stderr, "the library has other inputs and outputs: %s\n", digits_branchy_build_info());
    return 1;
  }
  float *images = argc == 3 ? read_images(argv[1], &count) : noise(count);
  if (!images) {
    perror(argc == 3 ? argv[1] : "images");
    return 1;
  }
  struct worker workers[2];
  pthread_t threads[2];
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < 2; i++) {
    workers[i].images = images;
    workers[i].count = count;
    workers[i].seconds = seconds;
    workers[i].device = devices == 0 ? 0 : i % (int)devices + 1;
    workers[i].logits = calloc(count, CLASSES * sizeof(float));
    if (!workers[i].logits || pthread_create(&threads[i], NULL, classify, &workers[i]) != 0) {
      fprintf(stderr, "cannot start thread %d\n", i);
      return 1;
    }
  }
  int failed = 0;
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    if (workers[i].status != digits_branchy_OK) {
      fprintf(stderr, "context %d: status %d: %s\n", i, workers[i].status, workers[i].message);
      failed = 1;
    }
    if (seconds > 0) printf("context %d: %zu rounds, %zu results differ from the first\n", i, workers[i].rounds, workers[i].different);
    if (workers[i].different) failed = 1;
  }
  if (!failed && memcmp(workers[0].logits, workers[1].logits, count * CLASSES * sizeof(float)) != 0) {
    fprintf(stderr, "the two contexts computed different bits\n");
    failed = 1;
  }
  if (!failed) printf("%zu images, two contexts agree\n", count);
  if (!failed && !save(argc == 3 ? argv[2] : NULL, workers[0].logits, count)) {
    perror(argv[2]);
    failed = 1;
  }
  free(images);
  free(workers[0].logits);
  free(workers[1].logits);
  return failed;
}
