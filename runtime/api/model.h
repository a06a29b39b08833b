// What a public Model holds.
#pragma once

#include <memory>

#include "api/ttrt.h"
#include "ir/model.h"
#include "session/model_source.h"

namespace ttrt {

struct Model::Impl {
  std::shared_ptr<const ttc::ModelSource> source;  // nullptr: made by a compile
  std::shared_ptr<const ttc::ir::Model> model;
};

}  // namespace ttrt
