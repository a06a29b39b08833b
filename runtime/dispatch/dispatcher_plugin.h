/* The C interface of dispatcher plug-ins: a shared library with two functions.
 *
 *   int can_dispatch_to_ttnn(const ttrt_dispatch_call* call);   1: this call, 0: not this one
 *   int dispatch_to_ttnn(const ttrt_dispatch_call* call);       0: done, a result was set; else: failed, an error was
 * set
 *
 * Single operators come by their ATen names with their arguments. Of a compiled program every device op comes, as
 * "tt.softmax" with its arguments in the order of the op's schema: can_dispatch_to_ttnn with tensors where they lie
 * (data may be NULL), dispatch_to_ttnn with all of them in host memory, floats as float32. What it sets is the op's
 * result; an op it refuses runs on the host. To leave an op to the device's kernels, take it and `delegate` it.
 *
 * Both are called from several threads at a time and must not throw across the boundary. Everything reachable from
 * `call` belongs to the host and is valid during the call only. ttrt runs a plug-in with
 *
 *   ttc run M --dispatcher ./libmine.so        or        TT_SYMBIOTE_DISPATCHER=./libmine.so
 */
#ifndef TTRT_DISPATCHER_PLUGIN_H
#define TTRT_DISPATCHER_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TTRT_DISPATCH_ABI 2

/* clang-format off */
enum ttrt_kind {
  TTRT_NONE, TTRT_INT, TTRT_DOUBLE, TTRT_BOOL, TTRT_STRING, TTRT_TENSOR, TTRT_LIST, TTRT_DTYPE, TTRT_OTHER
};
/* clang-format on */

typedef struct ttrt_value {
  int32_t kind;     /* enum ttrt_kind: says which of the fields below counts */
  int32_t dtype;    /* TENSOR, DTYPE: number of the element type in c10::ScalarType: 6 float32, 15 bfloat16, 4 int64 */
  const char* name; /* of a keyword argument, else NULL */
  int64_t integer;  /* INT, BOOL */
  double number;    /* DOUBLE */
  const char* text; /* STRING */
  void* data;       /* TENSOR: the first element in host memory; NULL where it lies on the device */
  int32_t rank;     /* TENSOR */
  const int64_t* sizes;           /* TENSOR: rank numbers */
  const int64_t* strides;         /* TENSOR: rank numbers, in elements; NULL where contiguous */
  const struct ttrt_value* items; /* LIST */
  int64_t count;                  /* LIST */
} ttrt_value;

typedef struct ttrt_dispatch_call {
  uint32_t abi;           /* TTRT_DISPATCH_ABI of the host; fields are only ever added at the end */
  const char* func_name;  /* "aten::mul.Tensor" */
  const ttrt_value* args; /* positional, then keyword arguments */
  int64_t arg_count;
  void* host; /* first argument of the functions below */
  /* Copies the value; several results are a LIST of TENSORs. 0: taken, else the host cannot hold such a value. */
  int (*set_result)(void* host, const ttrt_value* result);
  void (*set_error)(void* host, const char* message);
  /* What another dispatcher says and does about this very call: for plug-ins that change a few operators of "default".
     can_delegate returns 1 or 0; delegate returns 0 and sets the result, or sets the error. */
  int (*can_delegate)(void* host, const char* dispatcher);
  int (*delegate)(void* host, const char* dispatcher);
} ttrt_dispatch_call;

#ifdef __cplusplus
}
#endif

#endif
