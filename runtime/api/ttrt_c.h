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

/* The report of such a compile alone. */
TTRT_C_API ttrt_status ttrt_model_check(const ttrt_model* model, const char* options, char** report);

/* Two runs, node by node, a plain model compiled first. `options` is a JSON object, NULL for none: {"io":
   "x.safetensors", "input": ["x=zeros"], "shape": {}, "numerics": "exact", "against": "cpu", "by": "module", "mode":
   "sel", "pcc": 0.99, ...}; ttc.h, CompareOptions. `pass` takes 1 where every row reaches its threshold; `json`
   {"pass", "rows": [{"node", "op", "module", "source", "pcc", "max_abs", "max_rel", "snr_db", "nan", "zero",
   "threshold", "pass"}], "notes"}. Either may be NULL; so in the next one. Numbers that are not finite are null. */
TTRT_C_API ttrt_status ttrt_model_compare(const ttrt_model* model, const char* options, int* pass, char** json);
/* Whether a rewritten file is what its compile wrote: {"pass", "findings": [{"kind", "name", "detail", "pass"}]}. */
TTRT_C_API ttrt_status ttrt_model_verify(const ttrt_model* model, int* pass, char** json);
/* Writes the file that a rewritten model was made from, where it keeps it ("keep_original"). */
TTRT_C_API ttrt_status ttrt_model_undo(const ttrt_model* model, const char* path);
/* [{"kind", "name", "before", "after"}]; [] where both hold the same model. */
TTRT_C_API ttrt_status ttrt_model_diff(const ttrt_model* before, const ttrt_model* after, char** json);
/* The nn.Module at this path as a model of its own. `options`, NULL for none: {"io", "io_prefix", "io_steps", "input",
   "shape", "seed", "save_io"}; ttc.h, ExtractOptions. */
TTRT_C_API ttrt_status ttrt_model_extract(const ttrt_model* model, const char* module, const char* options,
                                          ttrt_model** out);
/* Which modules, or (by_rewrite 1) which rewrite, make the model miss `pcc`; `options` as of ttrt_model_compile, "io"
   has the calls. {"fails", "modules", "rewrite": {"number", "pass", "rule", "result"}, "runs": [{"what", "pcc",
   "pass"}]}. */
TTRT_C_API ttrt_status ttrt_model_bisect(const ttrt_model* model, const char* options, double pcc, int by_rewrite,
                                         char** json);
/* The cheapest precision that reaches `goal`, {"min_pcc", "min_snr_db", "max_top1_drop"}, on the calls of options'
   "io". `out` takes the model compiled so, `json` {"trials", "seen", "held_back", "options"}, the last as flags; either
   may be NULL. */
TTRT_C_API ttrt_status ttrt_model_search_precision(const ttrt_model* model, const char* goal, const char* options,
                                                   ttrt_model** out, char** json);

/* {name: summary} of "passes", "ops", "modules", "archs" or "dispatchers". */
TTRT_C_API ttrt_status ttrt_names(const char* what, char** json);
/* Loads a library that registers operators, passes, modules or dispatchers while it is loaded; it stays. */
TTRT_C_API ttrt_status ttrt_load_plugin(const char* path);

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
/* Input `index` on the device, for models that write it in place: a cache of fixed size. The tensor itself where the
   host reads that input. TTRT_UNSUPPORTED where the device's memory is full. */
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

/* Who serves its ops; dispatch.h, Dispatch, says more. JSON of counts, and of every check for one node of the model. */
TTRT_C_API ttrt_status ttrt_session_telemetry(const ttrt_session* session, char** json);
TTRT_C_API ttrt_status ttrt_session_explain(const ttrt_session* session, const char* node, char** json);
/* Rules (YAML or JSON text; NULL: what their file holds now) in place of the active ones, in the modes hot_reload and
   config. `ok` takes 0 where they are wrong and nothing changed; `json`, where not NULL, takes the messages. */
TTRT_C_API ttrt_status ttrt_session_reload_rules(ttrt_session* session, const char* rules, int* ok, char** json);
/* Back to the rules before; 0 where there are none. */
TTRT_C_API ttrt_status ttrt_session_rollback_rules(ttrt_session* session, int* ok);

#ifdef __cplusplus
}
#endif

#endif
