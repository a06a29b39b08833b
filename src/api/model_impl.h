// What a ttc::Model of the public interface holds, for the libraries that run what it compiled.
#pragma once

#define TTC_API_APART
#include "api/ttc.h"
#include "session/model_source.h"

namespace ttc::api {

struct Model::Impl {
  std::shared_ptr<const ModelSource> source;  // nullptr: made by a compile
  std::shared_ptr<const ir::Model> graph;
};

}  // namespace ttc::api
