// One table for each kind of options: the name, and what reads its value.
#include "api/options.h"

#include <functional>

#include "api/convert.h"
#include "support/json_util.h"

namespace ttrt {
namespace {

using ttc::Json;
using Readers = std::map<std::string, std::function<void(const Json&)>, std::less<>>;

void read_options(const std::string& text, const char* what, const Readers& readers) {
  try {
    const Json root = ttc::parse_json(text);
    for (const auto& [key, value] : ttc::as_object(root)) {
      const auto reader = readers.find(key);
      if (reader == readers.end()) {
        std::string known;
        for (const auto& [name, f] : readers) known += (known.empty() ? "" : ", ") + name;
        throw Error(Error::Kind::usage, std::string(what) + ": no option is called '" + key + "'",
                    "the options are " + known);
      }
      try {
        reader->second(value);
      } catch (const ttc::Error& error) {
        throw Error(Error::Kind::usage, std::string(what) + ": " + key + ": " + error.what(), error.hint());
      } catch (const Error& error) {
        throw Error(error.kind(), std::string(what) + ": " + key + ": " + error.what(), error.hint());
      }
    }
  } catch (const ttc::Error& error) {
    throw Error(Error::Kind::usage, std::string(what) + ": " + error.what(), error.hint());
  }
}

std::vector<std::string> names_of(const Readers& readers) {
  std::vector<std::string> out;
  for (const auto& [name, reader] : readers) out.push_back(name);
  return out;
}

template <typename E, std::size_t N>
E one_of(const std::string& text, const std::pair<const char*, E> (&names)[N]) {
  std::string known;
  for (const auto& [name, e] : names) {
    if (text == name) return e;
    known += std::string(known.empty() ? "" : ", ") + name;
  }
  throw Error(Error::Kind::usage, "'" + text + "' is none of " + known);
}

std::function<void(const Json&)> reads(std::string& into) {
  return [&into](const Json& v) { into = ttc::as_string(v); };
}
std::function<void(const Json&)> reads(bool& into) {
  return [&into](const Json& v) { into = ttc::as_bool(v); };
}
std::function<void(const Json&)> reads(double& into) {
  return [&into](const Json& v) { into = ttc::as_double(v); };
}
std::function<void(const Json&)> reads(std::optional<double>& into) {
  return [&into](const Json& v) { into = ttc::as_double(v); };
}
std::function<void(const Json&)> reads(std::vector<std::string>& into) {
  return [&into](const Json& v) {
    for (const Json& item : ttc::as_array(v)) into.push_back(ttc::as_string(item));
  };
}
template <typename Integer>
  requires std::is_integral_v<Integer>
std::function<void(const Json&)> reads(Integer& into) {
  return [&into](const Json& v) { into = static_cast<Integer>(ttc::as_int(v)); };
}

// {"GLOB": VALUE} or, in order, ["GLOB=VALUE", ...]; a value alone is for every module.
template <typename T, typename F>
std::function<void(const Json&)> reads_pairs(std::vector<std::pair<std::string, T>>& into, F read) {
  return [&into, read](const Json& v) {
    const auto one = [&](const std::string& text) {
      const std::size_t equals = text.rfind('=');
      into.emplace_back(equals == std::string::npos ? "*" : text.substr(0, equals),
                        read(Json(equals == std::string::npos ? text : text.substr(equals + 1))));
    };
    if (v.is_string()) return one(ttc::as_string(v));
    if (v.is_array()) {
      for (const Json& item : ttc::as_array(v)) one(ttc::as_string(item));
      return;
    }
    for (const auto& [glob, item] : ttc::as_object(v)) into.emplace_back(glob, read(item));
  };
}

InputShape shape_text(const std::string& text) {
  InputShape out;
  std::size_t at = text.find(':');
  if (at != std::string::npos) {
    const auto dtype = ttc::dtype_from_string(text.substr(0, at));
    if (!dtype) throw Error(Error::Kind::usage, "'" + text.substr(0, at) + "' is no element type");
    out.type = element_of(*dtype);
  }
  for (at = at == std::string::npos ? 0 : at + 1; at < text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const std::string dim = text.substr(at, end - at);
    if (dim.empty() || dim.size() > 18 || dim.find_first_not_of("0123456789") != std::string::npos)
      throw Error(Error::Kind::usage, "'" + text + "' is no shape", "such as 8x128 or i64:8x128");
    out.sizes.push_back(std::stoll(dim));
    at = end + 1;
  }
  return out;
}

std::function<void(const Json&)> reads_shapes(std::map<std::string, InputShape>& into) {
  return [&into](const Json& v) {
    for (const auto& [name, dims] : ttc::as_object(v)) {
      InputShape& shape = into[name];
      if (dims.is_string()) {
        shape = shape_text(ttc::as_string(dims));
        continue;
      }
      for (const Json& dim : ttc::as_array(dims)) shape.sizes.push_back(ttc::as_int(dim));
    }
  };
}

Format format(const Json& value) { return ttc::api::format_named(ttc::as_string(value)); }

Fidelity fidelity(const Json& value) {
  return one_of<Fidelity>(ttc::as_string(value), {{"LoFi", Fidelity::LoFi},
                                                  {"HiFi2", Fidelity::HiFi2},
                                                  {"HiFi3", Fidelity::HiFi3},
                                                  {"HiFi4", Fidelity::HiFi4},
                                                  {"library", Fidelity::library}});
}

std::optional<bool> fp32_acc(const Json& value) {
  if (!value.is_string()) return ttc::as_bool(value);
  return one_of<std::optional<bool>>(ttc::as_string(value), {{"on", true}, {"off", false}, {"library", std::nullopt}});
}

NumericsMode numerics(const Json& value) {
  return one_of<NumericsMode>(ttc::as_string(value), {{"fast", NumericsMode::fast}, {"exact", NumericsMode::exact}});
}

Readers readers_of(CompileOptions& o) {
  return {{"arch", reads(o.arch)},
          {"replace", [&o](const Json& v) { o.replace_text = v.is_string() ? ttc::as_string(v) : v.dump(); }},
          {"replace_file", reads(o.replace_file)},
          {"exclude", reads(o.exclude)},
          {"weight_dtype", reads_pairs(o.weight_dtype, format)},
          {"activation_dtype", [&o](const Json& v) { o.activation_dtype = format(v); }},
          {"fidelity", reads_pairs(o.fidelity, fidelity)},
          {"fp32_acc", reads_pairs(o.fp32_acc, fp32_acc)},
          {"fallback_op", reads(o.fallback_op)},
          {"fallback_module", reads(o.fallback_module)},
          {"fallback_node", reads(o.fallback_node)},
          {"require_full", reads(o.require_full)},
          {"shape", reads_shapes(o.shape)},
          {"input", reads(o.input)},
          {"io", reads(o.io)},
          {"passes", reads(o.passes)},
          {"disable", reads(o.disable)},
          {"stop_after", reads(o.stop_after)},
          {"rewrite_limit", reads(o.rewrite_limit)},
          {"verify_each", reads(o.verify_each)},
          {"reproducer", reads(o.reproducer)},
          {"keep_original", reads(o.keep_original)},
          {"embed_tests", reads(o.embed_tests)},
          {"test_pcc", reads(o.test_pcc)}};
}

Readers readers_of(SessionOptions& o) {
  return {{"mode",
           [&o](const Json& v) {
             o.mode = one_of<RunMode>(
                 ttc::as_string(v), {{"device", RunMode::device}, {"normal", RunMode::normal}, {"cpu", RunMode::cpu}});
           }},
          {"numerics", [&o](const Json& v) { o.numerics = numerics(v); }},
          {"arch", reads(o.arch)},
          {"dispatcher", reads(o.dispatcher)},
          {"dispatch_mode",
           [&o](const Json& v) {
             o.dispatch_mode = one_of<DispatchMode>(ttc::as_string(v), {{"static", DispatchMode::STATIC},
                                                                        {"dynamic", DispatchMode::DYNAMIC},
                                                                        {"hot_reload", DispatchMode::HOT_RELOAD},
                                                                        {"config", DispatchMode::CONFIG},
                                                                        {"auto", DispatchMode::AUTO}});
           }},
          {"dispatch_config", reads(o.dispatch_config)},
          {"static_kernels",
           [&o](const Json& v) {
             for (const auto& [op, kernel] : ttc::as_object(v)) o.static_kernels[op] = ttc::as_string(kernel);
           }},
          {"profile", reads(o.profile)},
          {"trace", reads(o.trace)},
          {"stream_weights", reads(o.stream_weights)}};
}

Readers readers_of(ttc::api::CompareOptions& o) {
  using ttc::api::Against;
  using ttc::api::CompareMode;
  return {{"io", reads(o.io)},
          {"io_prefix", reads(o.io_prefix)},
          {"io_steps", reads(o.io_steps)},
          {"input", reads(o.input)},
          {"shape", reads_shapes(o.shape)},
          {"carry", reads(o.carry)},
          {"seed", reads(o.seed)},
          {"arch", reads(o.arch)},
          {"numerics", [&o](const Json& v) { o.numerics = numerics(v); }},
          {"against",
           [&o](const Json& v) {
             o.against = one_of<Against>(ttc::as_string(v),
                                         {{"cpu", Against::cpu}, {"exact", Against::exact}, {"fast", Against::fast}});
           }},
          {"by",
           [&o](const Json& v) { o.by_module = one_of<bool>(ttc::as_string(v), {{"node", false}, {"module", true}}); }},
          {"pcc", reads(o.pcc)},
          {"max_rel", reads(o.max_rel)},
          {"mode", [&o](const Json& v) {
             o.mode = one_of<CompareMode>(ttc::as_string(v), {{"dpl", CompareMode::dpl},
                                                              {"sel", CompareMode::sel},
                                                              {"dpl-no-error-prop", CompareMode::dpl_no_error_prop}});
           }}};
}

Readers readers_of(ttc::api::ExtractOptions& o) {
  return {{"io", reads(o.io)},          {"io_prefix", reads(o.io_prefix)}, {"io_steps", reads(o.io_steps)},
          {"input", reads(o.input)},    {"shape", reads_shapes(o.shape)},  {"seed", reads(o.seed)},
          {"save_io", reads(o.save_io)}};
}

Readers readers_of(ttc::api::SearchGoal& o) {
  return {
      {"min_pcc", reads(o.min_pcc)}, {"min_snr_db", reads(o.min_snr_db)}, {"max_top1_drop", reads(o.max_top1_drop)}};
}

template <typename Options>
Options read(const std::string& json, const char* what) {
  Options out;
  read_options(json, what, readers_of(out));
  return out;
}

template <typename Options>
std::vector<std::string> names() {
  Options none;
  return names_of(readers_of(none));
}

}  // namespace

CompileOptions compile_options(const std::string& json) { return read<CompileOptions>(json, "compile options"); }
SessionOptions session_options(const std::string& json) { return read<SessionOptions>(json, "session options"); }
ttc::api::CompareOptions compare_options(const std::string& json) {
  return read<ttc::api::CompareOptions>(json, "compare options");
}

ttc::api::ExtractOptions extract_options(const std::string& json) {
  return read<ttc::api::ExtractOptions>(json, "extract options");
}
ttc::api::SearchGoal search_goal(const std::string& json) {
  return read<ttc::api::SearchGoal>(json, "the search's goal");
}

std::vector<std::string> compile_option_names() { return names<CompileOptions>(); }
std::vector<std::string> session_option_names() { return names<SessionOptions>(); }
std::vector<std::string> compare_option_names() { return names<ttc::api::CompareOptions>(); }

}  // namespace ttrt
