// What the files of the C interface share: the handles' contents, and how exceptions become status codes.
#pragma once

#include <deque>
#include <new>
#include <string>
#include <vector>

#include "api/convert.h"
#include "api/ttrt.h"
#include "api/ttrt_c.h"
#include "support/json_util.h"

struct ttrt_tensor {
  ttrt::Tensor tensor;
};

struct ttrt_model {
  // What ttrt_tensor_info points to.
  struct Info {
    ttrt::TensorInfo info;
    std::vector<ttrt_dim> dims;
  };
  explicit ttrt_model(ttrt::Model m) : model(std::move(m)) {
    for (ttrt::TensorInfo& info : model.inputs()) add(inputs, std::move(info));
    for (ttrt::TensorInfo& info : model.outputs()) add(outputs, std::move(info));
  }
  static void add(std::deque<Info>& to, ttrt::TensorInfo info) {
    Info& one = to.emplace_back(Info{.info = std::move(info), .dims = {}});
    for (const ttrt::Dim& dim : one.info.dims)
      one.dims.push_back({dim.size.value_or(-1), dim.min, dim.max.value_or(-1), dim.symbol.c_str()});
  }
  ttrt::Model model;
  std::deque<Info> inputs, outputs;
};

struct ttrt_session {
  ttrt_session(const ttrt::Model& model, const ttrt::SessionOptions& options) : session(model, options) {}
  mutable ttrt::Session session;
  std::size_t outputs = 0;
  bool profile = false;
};

namespace ttrt::c {

// Keeps what ttrt_last_error() gives for this thread.
ttrt_status failed_with(const Error& error) noexcept;
ttrt_status out_of_memory() noexcept;

// No exception crosses the boundary.
template <typename F>
ttrt_status safely(F&& f) noexcept {
  try {
    ttrt::guarded(f);
    return TTRT_OK;
  } catch (const Error& error) {
    return failed_with(error);
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

template <typename... T>
void require(const T*... pointers) {
  if (((pointers == nullptr) || ...)) throw Error(Error::Kind::usage, "a NULL where a pointer is needed");
}

// To be freed with ttrt_string_free. Numbers that are not finite are null in JSON.
char* new_string(const std::string& text);
char* new_json(const ttc::Json& json);

}  // namespace ttrt::c
