/* The C interface of libttrt, for C and for other languages: opaque handles, status codes, the last error as text.
 *
 * Every function that can fail returns a ttrt_status and writes its results through pointers, which stay untouched
 * where it fails; ttrt_last_error() then says why, for the calling thread. Handles are freed by their own _free, in any
 * order; freeing NULL does nothing. Strings and arrays that belong to a handle live as long as the handle, unless said
 * otherwise. Threads as in ttrt.h: any function from any thread, but no handle may be freed while another thread uses
 * it. A NULL where a pointer is needed is TTRT_USAGE.
 */
#ifndef TTRT_C_H
#define TTRT_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TTRT_C_API __attribute__((visibility("default")))
#else
#define TTRT_C_API
#endif

typedef enum ttrt_status {
  TTRT_OK = 0,
  TTRT_FAILED = 1,      /* the model, a kernel or LibTorch failed while it ran; no memory */
  TTRT_USAGE = 2,       /* a wrong input, name, shape, element type, option or order of calls */
  TTRT_UNSUPPORTED = 3, /* something this build, device or format can't do; the device's memory is full */
  TTRT_BAD_FILE = 4,    /* no well-formed model or configuration */
  TTRT_CANCELLED = 5,
  TTRT_BUG = 70
} ttrt_status;

/* Of the last call of this thread that failed; "" where none did. Valid until the thread's next failing call. */
TTRT_C_API const char* ttrt_last_error(void);
TTRT_C_API const char* ttrt_last_hint(void);
TTRT_C_API const char* ttrt_version_string(void);
/* Of the whole process; 0 leaves the number as it is. */
TTRT_C_API ttrt_status ttrt_set_threads(int32_t n);

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

typedef enum ttrt_element_type {
  TTRT_UINT8,
  TTRT_INT8,
  TTRT_INT16,
  TTRT_INT32,
  TTRT_INT64,
  TTRT_FLOAT16,
  TTRT_FLOAT32,
  TTRT_FLOAT64,
  TTRT_COMPLEX32,
  TTRT_COMPLEX64,
  TTRT_COMPLEX128,
  TTRT_BOOLEAN,
  TTRT_BFLOAT16,
  TTRT_UINT16,
  TTRT_UINT32,
  TTRT_UINT64,
  TTRT_FLOAT8_E4M3FN,
  TTRT_FLOAT8_E5M2,
  TTRT_FLOAT8_E4M3FNUZ,
  TTRT_FLOAT8_E5M2FNUZ,
  TTRT_FLOAT8_E8M0FNU
} ttrt_element_type;

/* Bytes of one element; 0 for a number that is no element type. */
TTRT_C_API size_t ttrt_element_size(int32_t type);
TTRT_C_API const char* ttrt_element_name(int32_t type); /* "float32"; "" for no element type */

typedef struct ttrt_tensor ttrt_tensor; /* contiguous, row-major; a handle shares its elements with its copies */

/* A copy of `bytes` bytes. TTRT_USAGE where they do not fill the shape; data NULL: uninitialised, `bytes` is not read.
 */
TTRT_C_API ttrt_status ttrt_tensor_create(int32_t type, const int64_t* shape, size_t rank, const void* data,
                                          size_t bytes, ttrt_tensor** out);
/* The caller's memory, which outlives the tensor; a model that writes its inputs writes there. */
TTRT_C_API ttrt_status ttrt_tensor_view(int32_t type, const int64_t* shape, size_t rank, void* data, size_t bytes,
                                        ttrt_tensor** out);
TTRT_C_API void ttrt_tensor_free(ttrt_tensor* tensor);
TTRT_C_API int32_t ttrt_tensor_type(const ttrt_tensor* tensor);
TTRT_C_API size_t ttrt_tensor_rank(const ttrt_tensor* tensor);
TTRT_C_API const int64_t* ttrt_tensor_shape(const ttrt_tensor* tensor);
TTRT_C_API int64_t ttrt_tensor_numel(const ttrt_tensor* tensor);
/* 1 where the elements lie on a device: ttrt_session_fetch brings them to the host. */
TTRT_C_API int ttrt_tensor_is_resident(const ttrt_tensor* tensor);
/* The elements and their size. TTRT_USAGE where the tensor is resident. */
TTRT_C_API ttrt_status ttrt_tensor_data(const ttrt_tensor* tensor, const void** data, size_t* bytes);

/* ---- models ----------------------------------------------------------------------------------------------------- */

typedef struct ttrt_model ttrt_model;

TTRT_C_API ttrt_status ttrt_model_load(const char* path, ttrt_model** out);
/* From memory, which is copied; `name` stands for the path in messages. */
TTRT_C_API ttrt_status ttrt_model_load_memory(const void* file, size_t bytes, const char* name, ttrt_model** out);
/* The model rewritten for a device; `model` stays as it is. `options` is a JSON object, NULL for none:
   {"arch": "n150", "replace": {"torch.nn.Linear": "TTNNLinear"}, "exclude": ["GLOB"], "weight_dtype": {"GLOB":
   "bfloat8_b"}, "activation_dtype": "float32", "fidelity": {"GLOB": "HiFi2"}, "fp32_acc": {"GLOB": true},
   "fallback_op": [], "fallback_module": [], "fallback_node": [], "require_full": false, "shape": {"x": [1, 8]},
   "passes": [], "disable": []}; ttc.h, CompileOptions, says what they mean. An unknown key is TTRT_USAGE.
   `report`, where not NULL, takes the JSON of `ttc compile --json`; free it with ttrt_string_free. */
TTRT_C_API ttrt_status ttrt_model_compile(const ttrt_model* model, const char* options, ttrt_model** out,
                                          char** report);
/* A .pt2, or TorchScript where the name ends in .pt. */
TTRT_C_API ttrt_status ttrt_model_save(const ttrt_model* model, const char* path);
TTRT_C_API void ttrt_model_free(ttrt_model* model);
TTRT_C_API int ttrt_model_is_rewritten(const ttrt_model* model);
TTRT_C_API void ttrt_string_free(char* text);

/* One dim of an input or output. */
typedef struct ttrt_dim {
  int64_t size;       /* -1: free */
  int64_t min, max;   /* the sizes the model takes; max -1: no limit */
  const char* symbol; /* of a free dim, "s0"; dims of one symbol have one size. "" where size is fixed */
} ttrt_dim;

typedef struct ttrt_tensor_info {
  const char* name;
  int32_t kind; /* 0 tensor, 1 integer, 2 number, 3 boolean, 4 other; numbers are given as tensors of rank 0 */
  int32_t type; /* ttrt_element_type; -1: the file does not say */
  int64_t rank; /* -1: the file does not say */
  const ttrt_dim* dims;
} ttrt_tensor_info;

TTRT_C_API size_t ttrt_model_input_count(const ttrt_model* model);
TTRT_C_API size_t ttrt_model_output_count(const ttrt_model* model);
/* TTRT_USAGE for an index that does not exist. What `out` points to belongs to the model. */
TTRT_C_API ttrt_status ttrt_model_input(const ttrt_model* model, size_t index, ttrt_tensor_info* out);
TTRT_C_API ttrt_status ttrt_model_output(const ttrt_model* model, size_t index, ttrt_tensor_info* out);

/* ---- sessions --------------------------------------------------------------------------------------------------- */

typedef struct ttrt_session ttrt_session;

/* `options` is a JSON object, NULL for none: {"mode": "device", "normal" or "cpu", "numerics": "fast" or "exact",
   "arch": "n150", "dispatcher": "default", "dispatch_mode": "static", "dispatch_config": "rules.yaml",
   "static_kernels": {"tt.linear": "tt.linear.1d"}, "profile": false}; ttrt.h, SessionOptions, says what they mean. */
TTRT_C_API ttrt_status ttrt_session_create(const ttrt_model* model, const char* options, ttrt_session** out);
TTRT_C_API void ttrt_session_free(ttrt_session* session);
/* Inputs in the order of the signature. `outputs` takes `output_count` handles, which the caller frees; TTRT_USAGE
   where the model has another number of outputs. `keep`, where not NULL, has output_count flags: 1 leaves that output
   on the device where nothing on the host needs it. */
TTRT_C_API ttrt_status ttrt_session_run(ttrt_session* session, const ttrt_tensor* const* inputs, size_t input_count,
                                        const uint8_t* keep, ttrt_tensor** outputs, size_t output_count);
/* Ends the run under way in another thread, which returns TTRT_CANCELLED. */
TTRT_C_API ttrt_status ttrt_session_cancel(ttrt_session* session);
/* Input `index` on the device, for models that write it in place: a cache of fixed size. The tensor itself where the host
   reads that input. TTRT_UNSUPPORTED where the device's memory is full. */
TTRT_C_API ttrt_status ttrt_session_place(ttrt_session* session, size_t index, const ttrt_tensor* tensor,
                                          ttrt_tensor** out);
/* A tensor in host memory. */
TTRT_C_API ttrt_status ttrt_session_fetch(const ttrt_session* session, const ttrt_tensor* tensor, ttrt_tensor** out);
/* Back to the buffers of the file. */
TTRT_C_API ttrt_status ttrt_session_reset(ttrt_session* session);
/* JSON text, to be freed with ttrt_string_free: {"runs", "nodes": {"device", "cpu"}, "fallbacks": [{"node", "op",
   "reason", "count"}], "device": {"cycles", "us"}, "transfers": {"to_device", "to_device_bytes", "to_host",
   "to_host_bytes", "us"}, "weights": {"total", "streamed", "bytes"}}, and where the session profiles, "ops": [{"node",
   "op", "module", "place", "kernel", "calls", "wall_us", "cycles", "bound", "bytes"}]. */
TTRT_C_API ttrt_status ttrt_session_report(const ttrt_session* session, char** json);

#ifdef __cplusplus
}
#endif

#endif
