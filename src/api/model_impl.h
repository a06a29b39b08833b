// What a Model of the public interface holds, for the libraries that run what it compiled.
#pragma once

#include <ttc/ttc.h>

#include "ir/model.h"
#include "session/model_source.h"

namespace ttc::api {

struct Model::Impl {
  std::shared_ptr<const ModelSource> source;  // nullptr: made by a compile
  std::shared_ptr<const ir::Model> model;
};

}  // namespace ttc::api
