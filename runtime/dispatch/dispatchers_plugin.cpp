// Plug-in libraries: loading with every complaint spelled out, and the translation of values.
#include <dlfcn.h>

#include <cstring>
#include <deque>
#include <filesystem>

#include "dispatch/dispatcher_plugin.h"
#include "ops/plugin.h"
#include "dispatch/dispatchers.h"

namespace ttrt::dispatch {
namespace {

using Function = int (*)(const ttrt_dispatch_call*);

// Values as the plug-in sees them; what they point to lives here or in the call.
class Translated {
 public:
  explicit Translated(const OperatorCall& call) : name_(call.name) {
    for (const RtValue& arg : call.args) args_.push_back(to_c(arg, nullptr));
    for (const auto& [name, value] : call.kwargs) args_.push_back(to_c(value, name.c_str()));
  }
  const char* name() const { return name_.c_str(); }
  const std::vector<ttrt_value>& args() const { return args_; }

 private:
  ttrt_value to_c(const RtValue& value, const char* name) {
    ttrt_value out{};
    out.kind = value.is_none() ? TTRT_NONE : TTRT_OTHER;
    out.name = name;
    if (const auto* v = value.get_if<std::int64_t>())
      out.kind = TTRT_INT, out.integer = *v;
    else if (const auto* d = value.get_if<double>())
      out.kind = TTRT_DOUBLE, out.number = *d;
    else if (const auto* b = value.get_if<bool>())
      out.kind = TTRT_BOOL, out.integer = *b;
    else if (const auto* s = value.get_if<std::string>())
      out.kind = TTRT_STRING, out.text = s->c_str();
    else if (const auto* t = value.get_if<DType>())
      out.kind = TTRT_DTYPE, out.dtype = ttc::c10_code(*t);
    else if (const auto* host = value.get_if<HostTensor>())
      tensor(out, ttc::c10_code(host->dtype), host->sizes, host->strides.data(), host->data);
    else if (const auto* device = value.get_if<DeviceTensor>())
      tensor(out, ttc::c10_code(torch_dtype(device->spec.dtype)), device->spec.logical, nullptr, nullptr);
    else if (const auto* list = value.get_if<RtValue::List>()) {
      std::vector<ttrt_value>& items = lists_.emplace_back();
      for (const RtValue& item : *list) items.push_back(to_c(item, nullptr));
      out.kind = TTRT_LIST, out.items = items.data(), out.count = static_cast<std::int64_t>(items.size());
    }
    return out;
  }
  static void tensor(ttrt_value& out, int dtype, const Shape& sizes, const std::int64_t* strides, void* data) {
    out.kind = TTRT_TENSOR, out.dtype = dtype, out.data = data;
    out.rank = static_cast<std::int32_t>(sizes.size()), out.sizes = sizes.data(), out.strides = strides;
  }

  std::string name_;
  std::deque<std::vector<ttrt_value>> lists_;
  std::vector<ttrt_value> args_;
};

constexpr int max_depth = 16;
constexpr std::int64_t max_items = 1 << 20;
constexpr std::int32_t max_rank = 64;

// A copy; nullopt for what cannot be held.
std::optional<RtValue> from_c(const ttrt_value& value, int depth = 0) {
  switch (value.kind) {
    case TTRT_NONE:
      return RtValue();
    case TTRT_INT:
      return RtValue(value.integer);
    case TTRT_DOUBLE:
      return RtValue(value.number);
    case TTRT_BOOL:
      return RtValue(value.integer != 0);
    case TTRT_STRING:
      return value.text ? std::optional<RtValue>(std::string(value.text)) : std::nullopt;
    case TTRT_LIST: {
      if (depth == max_depth || value.count < 0 || value.count > max_items || (value.count > 0 && !value.items))
        return std::nullopt;
      RtValue::List out;
      for (std::int64_t i = 0; i < value.count; ++i) {
        auto item = from_c(value.items[i], depth + 1);
        if (!item) return std::nullopt;
        out.push_back(std::move(*item));
      }
      return RtValue(std::move(out));
    }
    case TTRT_TENSOR: {
      const auto dtype = ttc::dtype_from_c10(value.dtype);
      if (!dtype || !value.data || value.rank < 0 || value.rank > max_rank || (value.rank > 0 && !value.sizes))
        return std::nullopt;
      HostTensor view{.dtype = *dtype,
                      .sizes = Shape(value.sizes, value.sizes + value.rank),
                      .strides = {},
                      .owner = nullptr,
                      .data = static_cast<std::byte*>(value.data)};
      view.strides = value.strides ? Shape(value.strides, value.strides + value.rank) : contiguous_strides(view.sizes);
      HostTensor copy = empty_host(*dtype, view.sizes);
      copy_into(view, copy);
      return RtValue(std::move(copy));
    }
    default:
      return std::nullopt;
  }
}

// One call of a plug-in, seen from the host.
struct Exchange {
  const OperatorCall& call;
  std::optional<RtValue> result;
  std::string error;

  static int set_result(void* host, const ttrt_value* value) {
    auto& self = *static_cast<Exchange*>(host);
    try {
      if (value) self.result = from_c(*value);
    } catch (const std::exception& error) {
      self.error = error.what();
      return 1;
    }
    if (self.result) return 0;
    self.error = "the plug-in set a result of a kind the host cannot hold";
    return 1;
  }
  static void set_error(void* host, const char* message) {
    static_cast<Exchange*>(host)->error = message ? message : "";
  }
  static int can_delegate(void* host, const char* dispatcher) {
    try {
      return dispatcher && !find_dispatcher(dispatcher)->refusal_of(static_cast<Exchange*>(host)->call) ? 1 : 0;
    } catch (const std::exception& error) {
      set_error(host, error.what());
      return 0;
    }
  }
  static int delegate(void* host, const char* dispatcher) {
    auto& self = *static_cast<Exchange*>(host);
    try {
      self.result = find_dispatcher(dispatcher ? dispatcher : "")->dispatch(self.call);
      return 0;
    } catch (const std::exception& error) {
      self.error = error.what();
      return 1;
    }
  }
};

class PluginDispatcher final : public TtnnDispatcher {
 public:
  PluginDispatcher(std::string path, Function can, Function run) : path_(std::move(path)), can_(can), run_(run) {}
  std::string summary() const override { return "Plug-in library"; }

  ttc::Refusal refusal_of(const OperatorCall& call) const override {
    Exchange exchange{call, {}, {}};
    if (ask(can_, exchange) == 1) return std::nullopt;
    return ttc::Reason{ttc::ReasonCode::UserExcluded,
                       exchange.error.empty() ? path_ + " does not take " + std::string(call.name) : exchange.error};
  }
  RtValue dispatch(const OperatorCall& call) const override {
    Exchange exchange{call, {}, {}};
    const int code = ask(run_, exchange);
    if (code == 0 && exchange.result) return std::move(*exchange.result);
    const std::string why = !exchange.error.empty() ? exchange.error
                            : code == 0             ? "it set no result"
                                                    : "it returned " + std::to_string(code) + " and set no error";
    throw DispatchError(Phase::EXECUTION, "plug-in " + path_ + " failed: " + why,
                        {.operation = std::string(call.name)});
  }

 private:
  static int ask(Function function, Exchange& exchange) {
    const Translated translated(exchange.call);
    const ttrt_dispatch_call call{TTRT_DISPATCH_ABI,
                                  translated.name(),
                                  translated.args().data(),
                                  static_cast<std::int64_t>(translated.args().size()),
                                  &exchange,
                                  Exchange::set_result,
                                  Exchange::set_error,
                                  Exchange::can_delegate,
                                  Exchange::delegate};
    return function(&call);
  }

  std::string path_;
  Function can_, run_;
};

}  // namespace

std::shared_ptr<const TtnnDispatcher> open_dispatcher_plugin(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code))
    throw ttc::bad_file(path, "the dispatcher plug-in is not there, or is no file");
  // A name without a slash would be searched for in the system's folders.
  const std::string place = path.find('/') == std::string::npos ? "./" + path : path;
  void* library = nullptr;
  if (const std::string why = open_plugin(place, &library); !why.empty())
    throw ttc::bad_file(path, "the dispatcher plug-in cannot be loaded: " + why);
  const auto function = [&](const char* name) {
    void* const symbol = dlsym(library, name);
    if (!symbol)
      throw ttc::bad_file(
          path, std::string("the dispatcher plug-in has no function '") + name + "'",
          "it must export can_dispatch_to_ttnn and dispatch_to_ttnn with C linkage, see dispatch/dispatcher_plugin.h");
    Function out = nullptr;
    std::memcpy(&out, &symbol, sizeof out);
    return out;
  };
  const Function can = function("can_dispatch_to_ttnn");
  return std::make_shared<PluginDispatcher>(path, can, function("dispatch_to_ttnn"));
}

}  // namespace ttrt::dispatch
