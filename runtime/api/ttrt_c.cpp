// Errors, tensors and sessions of the C interface: handles hold the C++ objects, exceptions become status codes and a
// message of the thread, options come as JSON because a struct of globs is no pleasure in C.
#include <cstring>

#include "api/dispatch.h"
#include "api/options.h"
#include "api/ttrt_c_handles.h"

namespace {

using ttc::Json;
using ttrt::Error;
using namespace ttrt::c;

static_assert(static_cast<int>(ttrt::ElementType::float8_e8m0fnu) == TTRT_FLOAT8_E8M0FNU);
static_assert(static_cast<int>(ttrt::ElementType::boolean) == TTRT_BOOLEAN);

thread_local std::string last_error, last_hint;

ttrt_status status_of(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::failed:
      return TTRT_FAILED;
    case Error::Kind::usage:
      return TTRT_USAGE;
    case Error::Kind::unsupported:
      return TTRT_UNSUPPORTED;
    case Error::Kind::bad_file:
      return TTRT_BAD_FILE;
    case Error::Kind::cancelled:
      return TTRT_CANCELLED;
    case Error::Kind::bug:
      return TTRT_BUG;
  }
  return TTRT_BUG;
}

ttrt::Shape shape_of(const std::int64_t* shape, std::size_t rank) {
  if (rank > 0) require(shape);
  return rank > 0 ? ttrt::Shape(shape, shape + rank) : ttrt::Shape();
}

Json report_json(const ttrt_session& session) {
  const ttrt::RunReport report = session.session.report();
  Json out{{"runs", report.runs},
           {"nodes", {{"device", report.device_nodes}, {"cpu", report.cpu_nodes}}},
           {"fallbacks", Json::array()},
           {"device", {{"cycles", report.device_cycles}, {"us", report.device_us}}},
           {"transfers",
            {{"to_device", report.to_device},
             {"to_device_bytes", report.to_device_bytes},
             {"to_host", report.to_host},
             {"to_host_bytes", report.to_host_bytes},
             {"us", report.transfer_us}}},
           {"weights",
            {{"total", report.weights}, {"streamed", report.streamed_weights}, {"bytes", report.streamed_bytes}}}};
  for (const ttrt::RunFallback& one : report.fallbacks)
    out["fallbacks"].push_back({{"node", one.node}, {"op", one.op}, {"reason", one.reason}, {"count", one.count}});
  if (!session.profile) return out;
  out["ops"] = Json::array();
  for (const ttrt::OpProfile& op : session.session.profile()) {
    const char* place = op.kind == ttrt::OpProfile::Kind::device ? "device"
                        : op.kind == ttrt::OpProfile::Kind::cpu  ? "cpu"
                                                                 : "transfer";
    out["ops"].push_back({{"node", op.node},
                          {"op", op.op},
                          {"module", op.module},
                          {"place", place},
                          {"kernel", op.kernel},
                          {"calls", op.calls},
                          {"wall_us", op.wall_us},
                          {"cycles", op.cycles},
                          {"bound", op.bound},
                          {"bytes", op.bytes}});
  }
  return out;
}

ttrt::ElementType element_type(std::int32_t type) {
  if (type < 0 || type > TTRT_FLOAT8_E8M0FNU) throw Error(Error::Kind::usage, "an element type that does not exist");
  return static_cast<ttrt::ElementType>(type);
}

}  // namespace

namespace ttrt::c {

ttrt_status failed_with(const Error& error) noexcept {
  last_error = error.what();
  last_hint = error.hint();
  return status_of(error.kind());
}

ttrt_status out_of_memory() noexcept {
  last_error = "out of memory";
  last_hint.clear();
  return TTRT_FAILED;
}

char* new_string(const std::string& text) {
  char* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (out == nullptr) throw std::bad_alloc();
  std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

char* new_json(const ttc::Json& json) { return new_string(json.dump(-1, ' ', false, Json::error_handler_t::replace)); }

}  // namespace ttrt::c

extern "C" {

const char* ttrt_last_error(void) { return last_error.c_str(); }
const char* ttrt_last_hint(void) { return last_hint.c_str(); }
const char* ttrt_version_string(void) { return ttrt::version(); }

ttrt_status ttrt_set_threads(int32_t n) {
  return safely([&] { ttrt::set_threads(n); });
}

size_t ttrt_element_size(int32_t type) {
  return type < 0 || type > TTRT_FLOAT8_E8M0FNU ? 0 : ttrt::element_size(element_type(type));
}
const char* ttrt_element_name(int32_t type) {
  return type < 0 || type > TTRT_FLOAT8_E8M0FNU ? "" : ttrt::name(element_type(type));
}

ttrt_status ttrt_tensor_create(int32_t type, const int64_t* shape, size_t rank, const void* data, size_t bytes,
                               ttrt_tensor** out) {
  return safely([&] {
    require(out);
    const auto* from = static_cast<const std::byte*>(data);
    *out = new ttrt_tensor{from == nullptr
                               ? ttrt::Tensor::empty(element_type(type), shape_of(shape, rank))
                               : ttrt::Tensor::from_bytes(element_type(type), shape_of(shape, rank), {from, bytes})};
  });
}

ttrt_status ttrt_tensor_view(int32_t type, const int64_t* shape, size_t rank, void* data, size_t bytes,
                             ttrt_tensor** out) {
  return safely([&] {
    require(out);
    if (bytes > 0) require(data);
    *out = new ttrt_tensor{
        ttrt::Tensor::view_bytes(element_type(type), shape_of(shape, rank), {static_cast<std::byte*>(data), bytes})};
  });
}

void ttrt_tensor_free(ttrt_tensor* tensor) { delete tensor; }
int32_t ttrt_tensor_type(const ttrt_tensor* tensor) { return static_cast<int32_t>(tensor->tensor.type()); }
size_t ttrt_tensor_rank(const ttrt_tensor* tensor) { return tensor->tensor.shape().size(); }
const int64_t* ttrt_tensor_shape(const ttrt_tensor* tensor) { return tensor->tensor.shape().data(); }
int64_t ttrt_tensor_numel(const ttrt_tensor* tensor) { return tensor->tensor.numel(); }
int ttrt_tensor_is_resident(const ttrt_tensor* tensor) { return tensor->tensor.is_resident() ? 1 : 0; }

ttrt_status ttrt_tensor_data(const ttrt_tensor* tensor, const void** data, size_t* bytes) {
  return safely([&] {
    require(tensor, data);
    const auto all = tensor->tensor.bytes();
    *data = all.data();
    if (bytes != nullptr) *bytes = all.size();
  });
}

ttrt_status ttrt_session_create(const ttrt_model* model, const char* options, ttrt_session** out) {
  return safely([&] {
    require(model, out);
    const ttrt::SessionOptions chosen = options == nullptr ? ttrt::SessionOptions() : ttrt::session_options(options);
    auto made = std::make_unique<ttrt_session>(model->model, chosen);
    made->outputs = model->outputs.size();
    made->profile = chosen.profile;
    *out = made.release();
  });
}

void ttrt_session_free(ttrt_session* session) { delete session; }

ttrt_status ttrt_session_run(ttrt_session* session, const ttrt_tensor* const* inputs, size_t input_count,
                             const uint8_t* keep, ttrt_tensor** outputs, size_t output_count) {
  return safely([&] {
    require(session);
    if (input_count > 0) require(inputs);
    if (output_count != session->outputs)
      throw Error(Error::Kind::usage, "the model has " + std::to_string(session->outputs) +
                                          " outputs, room is given for " + std::to_string(output_count));
    if (output_count > 0) require(outputs);
    std::vector<ttrt::Tensor> in;
    for (std::size_t i = 0; i < input_count; ++i) {
      require(inputs[i]);
      in.push_back(inputs[i]->tensor);
    }
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; keep != nullptr && i < output_count; ++i)
      if (keep[i] != 0) kept.push_back(i);
    const std::vector<ttrt::Tensor> out = session->session.run_keeping(in, kept);
    if (out.size() != output_count)
      throw Error(Error::Kind::unsupported, "an output is a list, which this interface does not hand over");
    std::vector<std::unique_ptr<ttrt_tensor>> made;
    for (const ttrt::Tensor& tensor : out) made.push_back(std::make_unique<ttrt_tensor>(ttrt_tensor{tensor}));
    for (std::size_t i = 0; i < output_count; ++i) outputs[i] = made[i].release();
  });
}

ttrt_status ttrt_session_cancel(ttrt_session* session) {
  return safely([&] {
    require(session);
    session->session.cancel();
  });
}

ttrt_status ttrt_session_place(ttrt_session* session, size_t index, const ttrt_tensor* tensor, ttrt_tensor** out) {
  return safely([&] {
    require(session, tensor, out);
    *out = new ttrt_tensor{session->session.place(index, tensor->tensor)};
  });
}

ttrt_status ttrt_session_fetch(const ttrt_session* session, const ttrt_tensor* tensor, ttrt_tensor** out) {
  return safely([&] {
    require(session, tensor, out);
    *out = new ttrt_tensor{session->session.fetch(tensor->tensor)};
  });
}

ttrt_status ttrt_session_reset(ttrt_session* session) {
  return safely([&] {
    require(session);
    session->session.reset();
  });
}

ttrt_status ttrt_session_report(const ttrt_session* session, char** json) {
  return safely([&] {
    require(session, json);
    *json = new_json(report_json(*session));
  });
}

ttrt_status ttrt_session_telemetry(const ttrt_session* session, char** json) {
  return safely([&] {
    require(session, json);
    *json = new_string(ttrt::dispatch_of(session->session).telemetry());
  });
}

ttrt_status ttrt_session_explain(const ttrt_session* session, const char* node, char** json) {
  return safely([&] {
    require(session, node, json);
    *json = new_string(ttrt::dispatch_of(session->session).explain(node));
  });
}

ttrt_status ttrt_session_reload_rules(ttrt_session* session, const char* rules, int* ok, char** json) {
  return safely([&] {
    require(session, ok);
    ttrt::Dispatch dispatch = ttrt::dispatch_of(session->session);
    const ttrt::RulesCheck check = rules == nullptr ? dispatch.reload() : dispatch.reload(rules);
    if (json != nullptr) *json = new_json(check.messages);
    *ok = check.ok ? 1 : 0;
  });
}

ttrt_status ttrt_session_rollback_rules(ttrt_session* session, int* ok) {
  return safely([&] {
    require(session, ok);
    *ok = ttrt::dispatch_of(session->session).rollback() ? 1 : 0;
  });
}

}  // extern "C"
