/* Calls the C interface of stencil as nobody should: each call has a status and a message, and touches nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stencil.h"

static int failures;

static void want(const char *what, int status, int expected, const stencil_ctx *ctx, const char *message) {
  const char *text = stencil_last_error(ctx);
  if (status == expected && (status == stencil_OK || strstr(text, message))) return;
  printf("%s: status %d, want %d; message \"%s\", want \"%s\"\n", what, status, expected, text, message);
  ++failures;
}

int main(void) {
  enum { BAD = stencil_BAD_ARGUMENT };
  stencil_options options = {0};
  stencil_ctx *ctx = NULL;
  want("no place for ctx", stencil_create(NULL, NULL), BAD, NULL, "ctx is a null pointer");
  want("no size", stencil_create(&options, &ctx), BAD, NULL, "options.size");
  options.size = sizeof options;
  options.device = -5;
  want("device -5", stencil_create(&options, &ctx), BAD, NULL, "options.device is negative");
  options.device = 0;
  options.mode = 7;
  want("mode 7", stencil_create(&options, &ctx), BAD, NULL, "options.mode is unknown");
  options.mode = stencil_MODE_AUTO;
  if (ctx) ++failures;

  want("run without a context", stencil_run(NULL, NULL, NULL, stencil_HOST), BAD, NULL, "ctx is a null pointer");
  want("run_async without a context", stencil_run_async(NULL, NULL, NULL, NULL), BAD, NULL, "ctx is a null pointer");
  want("trace without a context", stencil_trace(NULL, NULL, NULL), BAD, NULL, "ctx is a null pointer");
  if (strcmp(stencil_run_info(NULL), "{}")) ++failures;
  stencil_destroy(NULL);

  want("create", stencil_create(&options, &ctx), stencil_OK, NULL, "");
  if (!ctx) return 1;
  const size_t n = stencil_io_info()->inputs[0].bytes;
  char *memory = aligned_alloc(64, 4 * n);
  memset(memory, 0, 4 * n);
  const void *in[] = {memory};
  void *out[] = {memory + 2 * n};
  want("memory 9", stencil_run(ctx, in, out, (stencil_memory)9), BAD, ctx, "memory is unknown");
  want("no inputs", stencil_run(ctx, NULL, out, stencil_HOST), BAD, ctx, "input x is a null pointer");
  want("no outputs", stencil_run(ctx, in, NULL, stencil_HOST), BAD, ctx, "output y is a null pointer");
  want("trace without room for its size", stencil_trace(ctx, memory, NULL), BAD, ctx, "bytes is a null pointer");
  void *near[] = {memory + 4};
  want("an unaligned output", stencil_run(ctx, in, near, stencil_DEVICE), BAD, ctx, "output y is not aligned");
  void *same[] = {memory};
  want("the output is the input", stencil_run(ctx, in, same, stencil_DEVICE), BAD, ctx, "output y overlaps input x");
  void *half[] = {memory + n / 2};
  want("half of the output", stencil_run_async(ctx, NULL, in, half), BAD, ctx, "output y overlaps input x");
  want("in place in host memory", stencil_run(ctx, in, same, stencil_HOST), stencil_OK, ctx, "");
  want("side by side", stencil_run(ctx, in, out, stencil_DEVICE), stencil_OK, ctx, "");
  stencil_destroy(ctx);
  free(memory);
  printf("%d failures\n", failures);
  return 0;
}
