// Graphs of single modules: cut out of a model, or written down as one call of an ATen operator; and compiling them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "session/compile_settings.h"
#include "session/part.h"

namespace ttc {

// The nodes that a module and those within it computed. Throws ttc::Error: usage where there is no such module, with a
// near name, or nothing that it computes is read elsewhere; unsupported for a rewritten model.
Boundary module_part(const ir::Model& model, const std::string& path);
// The same as a model of its own.
std::unique_ptr<ir::Model> cut_module(const ir::Model& model, const std::string& path);
// The modules of a model that computed something, their classes by path.
std::map<std::string, std::string> modules_of(const ir::Model& model);

// The input of the call, one of its weights, or a literal.
struct CallArgument {
  std::string name;
  enum class Kind : std::uint8_t { input, weight, literal } kind = Kind::literal;
  ir::Weight weight = {};
  ir::Arg literal = {};  // a number for a list of them stands for each
};
struct SampleDim {
  std::int64_t size = 0;
  bool free = false;  // other sizes that the operator takes are welcome
};
// A model of one call. Throws ttc::Error (usage) where the operator does not take these arguments.
std::unique_ptr<ir::Model> model_of_call(const std::string& op, const std::vector<CallArgument>& args,
                                         const std::vector<SampleDim>& sample, DType dtype, const std::string& klass);
// The only output goes through an operator of one tensor.
void append_call(ir::Model& model, const std::string& op);

// Compiles in memory. Packed weights are made now.
CompileResult compile_module(ir::Model& model, const CompileSettings& settings, const ttrt::ArchProfile& profile);

}  // namespace ttc
